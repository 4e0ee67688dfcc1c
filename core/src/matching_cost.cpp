// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/matching_cost.hpp>
#include <boxloss/registry.hpp>
#include <cmath>

#include "src/checks.hpp"

namespace boxloss {
namespace {

bool is_of_logits(ClassTerm term) {
  return term == ClassTerm::kSoftmax || term == ClassTerm::kSigmoid || term == ClassTerm::kFocal;
}

/// Whether nothing is read.
bool is_empty(const PairwiseProblem& p) {
  return p.pred.images == 0 || p.pred.slots == 0 || p.target.slots == 0;
}

void check_shape(const PairwiseProblem& p) {
  check(p.layers >= 1, "layers is ", p.layers, "; it must be at least 1");
  check(p.pred.images % p.layers == 0, "pred has ", p.pred.images, " images, which ", p.layers,
        " layers cannot have in equal numbers");
  check(!is_given(p.pred.rows) && !is_given(p.target.rows),
        "pred.rows and target.rows must not be given for a matching cost");
  check(p.target.images == 1, "target must be one image of T slots, but has ", p.target.images,
        " images");
  const std::int64_t queries = p.pred.slots, columns = p.target.slots;
  check(queries == 0 || columns == 0 ||
            (p.layers <= kMostBoxes / queries && p.layers * queries <= kMostBoxes / columns),
        "cost would have ", p.layers, " layers of ", queries, " queries and ", columns,
        " columns, which is more than 64 bits can count");
  check_given("offsets", p.offsets, !is_empty(p), "(images + 1) integers");
}

void check_scores(const PairwiseProblem& p) {
  const ScoreView& scores = p.scores;
  if (p.class_term == ClassTerm::kNone) return;
  const bool is_shared = p.class_term == ClassTerm::kGiven;  // by the images of a layer
  check_stride("scores", "block", scores.block_stride, is_shared ? p.layers : p.pred.images);
  check_stride("scores", "query", scores.query_stride, p.pred.slots);
  check(may_be_stride(scores.block_stride) && may_be_stride(scores.query_stride),
        "scores has a negative stride: ", scores.block_stride, " by block, ", scores.query_stride,
        " by query");
}

void check_labels(const PairwiseProblem& p) {
  if (!is_of_logits(p.class_term)) {
    check(!is_given(p.labels), "labels must not be given where class_term is ",
          name_of(p.class_term));
    return;
  }
  check_size("classes", p.classes, "scores of each query");
  check_given("labels", p.labels, !is_empty(p), "(T) integers");
}

/// As the type that it is used in.
void check_finite(const char* name, double number, DType type) {
  const bool is_finite =
      type == DType::kF64 ? std::isfinite(number) : std::isfinite(static_cast<float>(number));
  check(is_finite, name, " is ", number, "; it must be finite, as a ", name_of(type));
}

const CostFunctions& served_by(const Implementation& implementation, const CostProblem&) {
  return implementation.matching_cost;
}
const RotatedCostFunctions& served_by(const Implementation& implementation,
                                      const RotatedCostProblem&) {
  return implementation.rotated_matching_cost;
}

template <class Problem>
constexpr const char* kOperation = "matching_cost";
template <>
inline constexpr const char* kOperation<RotatedCostProblem> = "rotated_matching_cost";

template <class Problem>
void check_problem(const Implementation& implementation, const Problem& p) {
  const auto& served = served_by(implementation, p);
  check_served(implementation, kOperation<Problem>, served.run != nullptr, p.device, p.loss,
               served.losses);
  check_options(p);
  check_dtype(served.class_terms.contains(p.class_term), implementation.name,
              " does not serve the matching cost with the class term ", name_of(p.class_term));
  check_boxes("pred", p.pred, Problem::kNumbers);
  check_boxes("target", p.target, Problem::kNumbers);
  check_shape(p);
  check_scores(p);
  check_labels(p);
}

void check_pointers(const PairwiseProblem& p) {
  const bool is_read = !is_empty(p);
  check_pointers("pred", "pred.rows", p.pred, is_read);
  check_pointers("target", "target.rows", p.target, is_read);
  check_pointer("offsets", p.offsets, is_read);
  if (p.class_term == ClassTerm::kNone) {
    check(p.scores.data == nullptr, "scores.data must be null where class_term is none");
  } else {
    const bool are_scores_read = is_read && (p.class_term == ClassTerm::kGiven || p.classes > 0);
    check(p.scores.data != nullptr || !are_scores_read, "scores.data is null");
    check_aligned("scores", p.scores.data, p.scores.dtype);
  }
  check_pointer("labels", p.labels, is_read);
}

void check_common_options(const PairwiseProblem& p) {
  const DType compute = compute_dtype(p);
  check_enumerator("class_term", "", p.class_term);
  check_enumerator("eps_mode", "", p.eps_mode);
  check_floating("pred", p.pred.dtype);
  check_indices("offsets", p.offsets);
  if (p.class_term != ClassTerm::kNone) check_floating("scores", p.scores.dtype);
  if (is_of_logits(p.class_term)) check_indices("labels", p.labels);
  check_finite("iou_weight", p.iou_weight, compute);
  check_finite("l1_weight", p.l1_weight, compute);
  check_finite("class_weight", p.class_weight, compute);
  check_finite("focal_alpha", p.focal_alpha, compute);
  check_finite("focal_gamma", p.focal_gamma, compute);
  check(p.focal_gamma >= 0, "focal_gamma is ", p.focal_gamma, "; it must be >= 0");
  check_eps(p.eps, compute);
  if (p.nonfinite) check_finite("nonfinite", *p.nonfinite, DType::kF32);  // as the result is
}

template <class Problem>
std::size_t workspace_bytes_for(const Implementation& implementation, const Problem& p) {
  check_problem(implementation, p);
  return 0;
}

template <class Problem>
void run_on(const Implementation& implementation, const Problem& problem, float* cost,
            const Execution& execution) {
  check_call(workspace_bytes_for<Problem>, implementation, problem, execution);
  check_pointers(problem);
  const bool has_entries = problem.pred.slots > 0 && problem.target.slots > 0;
  check(cost != nullptr || !has_entries, "cost is null");
  check_aligned("cost", cost, DType::kF32);
  Problem p = problem;
  p.parameters = complete_parameters(p.loss, p.parameters);
  served_by(implementation, p).run(p, cost, execution);
}

}  // namespace

DType compute_dtype(const PairwiseProblem& problem) {
  const bool is_f64 = problem.pred.dtype == DType::kF64 || problem.target.dtype == DType::kF64;
  return is_f64 ? DType::kF64 : DType::kF32;
}

void check_options(const CostProblem& p) {
  check_common_options(p);
  check_enumerator("pred", ".format", p.pred.format);
  check_enumerator("target", ".format", p.target.format);
  check(p.l1_weight == 0 || p.pred.format == p.target.format, "l1_weight is ", p.l1_weight,
        ", and l1 is of values in one format, but pred is ", name_of(p.pred.format), " and target ",
        name_of(p.target.format));
  complete_parameters(p.loss, p.parameters);  // throws
}

void check_options(const RotatedCostProblem& p) {
  check_common_options(p);
  check_enumerator("angle_unit", "", p.angle_unit);
  check_finite("angle_weight", p.angle_weight, compute_dtype(p));
  complete_parameters(p.loss, p.parameters);  // throws
}

std::int64_t cost_images(const PairwiseProblem& problem) {
  check(problem.layers >= 1, "layers is ", problem.layers, "; it must be at least 1");
  return problem.pred.images / problem.layers;
}

std::size_t matching_cost_workspace_bytes(const Implementation& implementation,
                                          const CostProblem& problem) {
  return workspace_bytes_for(implementation, problem);
}

std::size_t matching_cost_workspace_bytes(const Implementation& implementation,
                                          const RotatedCostProblem& problem) {
  return workspace_bytes_for(implementation, problem);
}

void matching_cost(const Implementation& implementation, const CostProblem& problem, float* cost,
                   const Execution& execution) {
  run_on(implementation, problem, cost, execution);
}

void matching_cost(const Implementation& implementation, const RotatedCostProblem& problem,
                   float* cost, const Execution& execution) {
  run_on(implementation, problem, cost, execution);
}

}  // namespace boxloss
