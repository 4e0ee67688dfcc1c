// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/matching_cost.hpp>

#include "call.hpp"

/// The matcher's cost. pairwise_iou is one of the loss alone, with the options of a cost.
namespace boxloss::jax_binding {
namespace {

using Shape = std::vector<std::int64_t>;

struct CostArgs {
  explicit CostArgs(const Arguments& arguments)
      : pred(given(arguments, "pred")),
        target(given(arguments, "target")),
        offsets(given(arguments, "offsets")) {
    CostArgs& options = *this;
    BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_READ_OPTION)
  }

  const Operand& pred;
  const Operand& target;
  const Operand& offsets;
  BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_OPTION_MEMBER)

  /// logits or class_cost.
  Array scores() const { return logits != nullptr ? logits : class_cost; }
};

ClassTerm parse_class_term(const CostArgs& a) {
  const auto mode = parse("class_mode", a.class_mode,
                          {ClassTerm::kSoftmax, ClassTerm::kSigmoid, ClassTerm::kFocal});
  check(a.logits == nullptr || a.class_cost == nullptr, "give logits or class_cost, not both");
  const bool has_logits = a.logits != nullptr;
  check(has_logits == (a.labels != nullptr), has_logits ? "logits" : "labels", " is given without ",
        has_logits ? "labels" : "logits");
  return a.class_cost != nullptr ? ClassTerm::kGiven : has_logits ? mode : ClassTerm::kNone;
}

void check_logits(const CostArgs& a) {
  const Shape &pred = a.pred.shape, &logits = a.logits->shape;
  check(logits.size() == pred.size(), "logits has shape ", text_of(logits),
        "; it must be (..., classes), with pred's shape ", text_of(pred), " in front");
  Shape wanted(pred.begin(), pred.end() - 1);
  wanted.push_back(logits.back());
  check_shape(*a.logits, wanted, "pred's with classes in place of the 4");
  check_shape(*a.labels, {a.target.shape[0]}, "one for each target");
}

/// From the last dimension backwards, each must be the result's, 1, or missing.
void check_class_cost(const CostArgs& a) {
  const Shape &shape = a.class_cost->shape, &pred = a.pred.shape;
  Shape wanted(pred.begin(), pred.end() - 3);
  wanted.insert(wanted.end(), {pred.end()[-2], a.target.shape[0]});
  bool fits = shape.size() >= 2 && shape.size() <= wanted.size();
  for (std::size_t i = 1; fits && i <= shape.size(); ++i) {
    const std::int64_t size = shape[shape.size() - i];
    fits = size == wanted[wanted.size() - i] || (i > 2 && size == 1);
  }
  check(fits, "class_cost has shape ", text_of(shape), "; it must be ", text_of(wanted),
        ", the result's; but leading dimensions may be 1 or missing");
}

/// Memory comes with the run. For softmax the logits of a run are log-probabilities.
CostProblem describe(const CostArgs& a) {
  CostProblem p;
  p.loss = loss_named(a.loss);
  p.pred.format = parse_format("pred_format", a.pred_format);
  p.target.format = parse_format("target_format", a.target_format);
  p.eps_mode = parse_eps_mode(a.eps_mode);
  p.class_term = parse_class_term(a);
  p.focal_alpha = a.focal_alpha;
  p.focal_gamma = a.focal_gamma;
  p.iou_weight = a.iou_weight;
  p.l1_weight = a.l1_weight;
  p.class_weight = a.class_weight;
  p.eps = a.eps;
  p.nonfinite = a.nonfinite;
  p.pred.dtype = dtype_of(a.pred, kFloatingDTypes);
  p.target.dtype = dtype_of(a.target);
  p.offsets = later(&a.offsets, kIndexDTypes);
  p.labels = later(a.labels, kIndexDTypes);
  if (a.scores() != nullptr) {
    p.scores.data = kLater;
    p.scores.dtype = dtype_of(*a.scores(), kFloatingDTypes);
    check_floating(*a.scores(), p.scores.dtype);
  }

  check_boxes_shape(a.pred);
  check_boxes_shape(a.target);
  const Shape &pred = a.pred.shape, &target = a.target.shape;
  check(pred.size() >= 3, "pred has shape ", text_of(pred),
        "; it must be (..., images, queries, 4)");
  check(target.size() == 2, "target has shape ", text_of(target),
        "; it must be (boxes of all images, 4)");
  const std::int64_t images = pred.end()[-3], queries = pred.end()[-2], columns = target[0];
  check_shape(a.offsets, {images + 1}, "one more than pred has images");
  if (a.logits != nullptr) check_logits(a);
  if (a.class_cost != nullptr) check_class_cost(a);

  p.layers = leading(pred, 3);
  p.pred.data = kLater;
  p.pred.images = p.layers * images;
  p.pred.slots = queries;
  p.pred.image_stride = 4 * queries;
  p.target.data = kLater;
  p.target.slots = columns;
  if (a.logits != nullptr) {
    p.classes = a.logits->shape.back();
    p.scores.query_stride = p.classes;
  } else if (a.class_cost != nullptr) {
    p.scores.query_stride = columns;
  }
  // A matrix for each layer, or one for all.
  const bool is_shared = a.class_cost != nullptr && leading(a.class_cost->shape, 2) == 1;
  p.scores.block_stride = is_shared ? 0 : queries * p.scores.query_stride;
  check_options(p);
  return p;
}

/// Without images, too, it has those of columns, which are 0. Core knows no cost without layers.
bool has_entries(const CostProblem& p) {
  return p.layers > 0 && p.pred.slots > 0 && p.target.slots > 0;
}

std::size_t workspace(const Arguments& arguments, const Implementation& implementation) {
  CostProblem problem = describe(CostArgs(arguments));
  problem.device = implementation.device;
  return if_served([&] {
    if (has_entries(problem)) CostPlan(implementation, problem);
    return 0;
  });
}

void cost(const Call& call) {
  const CostArgs args(call.arguments);
  CostProblem problem = describe(args);
  if (!has_entries(problem)) return;
  problem.device = call.implementation.device;
  CostPlan(call.implementation, problem)
      .run({args.pred.data, args.target.data, args.offsets.data, data_of(args.scores()),
            data_of(args.labels)},
           static_cast<float*>(call.result("cost")), call.execution);
}

}  // namespace
}  // namespace boxloss::jax_binding

BOXLOSS_JAX_CHECK(boxloss_jax_matching_cost, boxloss::jax_binding::workspace);
BOXLOSS_JAX_HANDLERS(boxloss_jax_matching_cost, boxloss::jax_binding::cost);
