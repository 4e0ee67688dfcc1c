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
bool is_empty(const CostProblem& p) {
  return p.pred.images == 0 || p.pred.slots == 0 || p.target.slots == 0;
}

void check_shape(const CostProblem& p) {
  check(p.layers >= 1, "layers is ", p.layers, "; it must be at least 1");
  check(p.pred.images % p.layers == 0, "pred has ", p.pred.images, " images, which ", p.layers,
        " layers cannot have in equal numbers");
  check(p.pred.rows.data == nullptr && p.target.rows.data == nullptr,
        "pred.rows and target.rows must be null for a matching cost");
  check(p.target.images == 1, "target must be one image of T slots, but has ", p.target.images,
        " images");
  const std::int64_t queries = p.pred.slots, columns = p.target.slots;
  check(queries == 0 || columns == 0 ||
            (p.layers <= kMostBoxes / queries && p.layers * queries <= kMostBoxes / columns),
        "cost would have ", p.layers, " layers of ", queries, " queries and ", columns,
        " columns, which is more than 64 bits can count");
  check(p.offsets.data != nullptr || is_empty(p),
        "offsets is null; it must point to (images + 1) integers");
}

void check_scores(const CostProblem& p) {
  const ScoreView& scores = p.scores;
  if (p.class_term == ClassTerm::kNone) {
    check(scores.data == nullptr, "scores.data must be null where class_term is none");
    return;
  }
  check(scores.block_stride >= 0 && scores.query_stride >= 0,
        "scores has a negative stride: ", scores.block_stride, " by block, ", scores.query_stride,
        " by query");
  const bool needs_data = !is_empty(p) && (p.class_term == ClassTerm::kGiven || p.classes > 0);
  check(scores.data != nullptr || !needs_data, "scores.data is null");
}

void check_labels(const CostProblem& p) {
  if (!is_of_logits(p.class_term)) {
    check(p.labels.data == nullptr, "labels must be null where class_term is ",
          name_of(p.class_term));
    return;
  }
  check_size("classes", p.classes, "scores of each query");
  check(p.labels.data != nullptr || is_empty(p), "labels is null; it must point to (T) integers");
}

/// As the type that it is used in.
void check_finite(const char* name, double number, DType type) {
  const bool is_finite =
      type == DType::kF64 ? std::isfinite(number) : std::isfinite(static_cast<float>(number));
  check(is_finite, name, " is ", number, "; it must be finite, as a ", name_of(type));
}

void check_enumerators(const CostProblem& p) {
  check_enumerator("class_term", "", p.class_term);
  check_enumerator("pred", ".format", p.pred.format);
  check_enumerator("target", ".format", p.target.format);
  check_enumerator("eps_mode", "", p.eps_mode);
}

void check_problem(const Implementation& implementation, const CostProblem& p) {
  const CostFunctions& served = implementation.matching_cost;
  check_served(implementation, "matching_cost", served.run != nullptr, p.device, p.loss,
               served.losses);
  check_enumerators(p);
  check_dtype(served.class_terms.contains(p.class_term), implementation.name,
              " does not serve the matching cost with the class term ", name_of(p.class_term));
  check_boxes("pred", p.pred);
  check_boxes("target", p.target);
  check_options(p);
  check_shape(p);
  check_scores(p);
  check_labels(p);
}

/// Checks the pointers against those that the plan was made with. Without entries nothing is read,
/// and all may be null.
CostProblem with_arrays(CostProblem p, const CostArrays& arrays) {
  const bool is_read = !is_empty(p);
  set_array("pred", p.pred, arrays.pred, is_read);
  set_array("target", p.target, arrays.target, is_read);
  set_array("offsets", p.offsets, arrays.offsets, is_read);
  set_array("scores", p.scores, arrays.scores, is_read);
  set_array("labels", p.labels, arrays.labels, is_read);
  return p;
}

}  // namespace

DType compute_dtype(const CostProblem& problem) {
  const bool is_f64 = problem.pred.dtype == DType::kF64 || problem.target.dtype == DType::kF64;
  return is_f64 ? DType::kF64 : DType::kF32;
}

void check_options(const CostProblem& p) {
  const DType compute = compute_dtype(p);
  check_enumerators(p);
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
  check(p.l1_weight == 0 || p.pred.format == p.target.format, "l1_weight is ", p.l1_weight,
        ", and l1 is of values in one format, but pred is ", name_of(p.pred.format), " and target ",
        name_of(p.target.format));
  check_eps(p.eps, compute);
  if (p.nonfinite) check_finite("nonfinite", *p.nonfinite, DType::kF32);  // as the result is
}

std::int64_t cost_images(const CostProblem& problem) {
  check(problem.layers >= 1, "layers is ", problem.layers, "; it must be at least 1");
  return problem.pred.images / problem.layers;
}

CostArrays arrays_of(const CostProblem& p) {
  return {p.pred.data, p.target.data, p.offsets.data, p.scores.data, p.labels.data};
}

CostPlan::CostPlan(const Implementation& implementation, const CostProblem& problem)
    : implementation_(&implementation), problem_(problem) {
  check_problem(implementation, problem);
}

void CostPlan::run(const CostArrays& arrays, float* cost, const Execution& execution) const {
  const bool has_entries = problem_.pred.slots > 0 && problem_.target.slots > 0;
  check(cost != nullptr || !has_entries, "cost is null");
  check_aligned("cost", cost, DType::kF32);
  check_execution(execution, problem_.device);
  implementation_->matching_cost.run(with_arrays(problem_, arrays), cost, execution);
}

void matching_cost(const Implementation& implementation, const CostProblem& problem, float* cost,
                   const Execution& execution) {
  CostPlan(implementation, problem).run(arrays_of(problem), cost, execution);
}

std::size_t matching_cost_workspace_bytes(const Implementation& implementation,
                                          const CostProblem& problem) {
  CostPlan(implementation, problem);
  return 0;
}

}  // namespace boxloss
