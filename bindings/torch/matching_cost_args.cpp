// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "matching_cost_args.hpp"

#include <initializer_list>

#include "checks.hpp"

namespace boxloss::torch_binding {
namespace {

/// pred's shape with `last` in place of its last `dropped` dimensions.
std::vector<c10::SymInt> like_pred(const CostArgs& a, std::size_t dropped,
                                   std::initializer_list<c10::SymInt> last) {
  const auto pred = a.pred.sym_sizes();
  std::vector<c10::SymInt> shape(pred.begin(), pred.end() - static_cast<std::ptrdiff_t>(dropped));
  shape.insert(shape.end(), last);
  return shape;
}

ClassTerm parse_class_term(const CostArgs& a) {
  const auto mode = parse<ClassTerm>(a.function, "class_mode", a.class_mode,
                                     {ClassTerm::kSoftmax, ClassTerm::kSigmoid, ClassTerm::kFocal});
  TORCH_CHECK_VALUE(!a.logits || !a.class_cost, a.function,
                    ": give logits or class_cost, not both");
  TORCH_CHECK_VALUE(a.logits.has_value() == a.labels.has_value(), a.function, ": ",
                    a.logits ? "logits" : "labels", " is given without ",
                    a.logits ? "labels" : "logits");
  return a.class_cost ? ClassTerm::kGiven : a.logits ? mode : ClassTerm::kNone;
}

void check_logits(const CostArgs& a) {
  const at::Tensor& logits = *a.logits;
  TORCH_CHECK_VALUE(logits.dim() == a.pred.dim(), a.function, ": logits has shape ",
                    logits.sym_sizes(), "; it must be (..., classes), with pred's shape ",
                    a.pred.sym_sizes(), " in front");
  check_shape(a.function, "logits", logits, like_pred(a, 1, {logits.sym_size(-1)}),
              "pred's with classes in place of the 4");
  check_shape(a.function, "labels", *a.labels, {a.target.sym_size(0)}, "one for each target");
}

/// From the last dimension backwards, each must be the result's, 1, or missing.
void check_class_cost(const CostArgs& a) {
  const auto given = a.class_cost->sym_sizes();
  const std::vector<c10::SymInt> wanted = cost_shape(a);
  bool fits = given.size() >= 2 && given.size() <= wanted.size();
  for (std::size_t i = 1; fits && i <= given.size(); ++i) {
    const c10::SymInt& size = given[given.size() - i];
    fits = size == wanted[wanted.size() - i] || (i > 2 && size == 1);
  }
  TORCH_CHECK_VALUE(fits, a.function, ": class_cost has shape ", given, "; it must be ",
                    c10::SymIntArrayRef(wanted),
                    ", the result's; but leading dimensions may be 1 or missing");
}

}  // namespace

std::vector<c10::SymInt> cost_shape(const CostArgs& a) {
  return like_pred(a, 3, {a.pred.sym_size(-2), a.target.sym_size(0)});
}

CostProblem describe(const CostArgs& a) {
  CostProblem p;
  p.loss = parse_loss(a.function, a.loss);
  p.pred.format = parse_format(a.function, "pred_format", a.pred_format);
  p.target.format = parse_format(a.function, "target_format", a.target_format);
  p.eps_mode = parse_eps_mode(a.function, a.eps_mode);
  p.class_term = parse_class_term(a);
  p.focal_alpha = a.focal_alpha;
  p.focal_gamma = a.focal_gamma;
  p.iou_weight = a.iou_weight;
  p.l1_weight = a.l1_weight;
  p.class_weight = a.class_weight;
  p.eps = a.eps;
  p.nonfinite = a.nonfinite;

  check_dense(a.function, "pred", a.pred);
  check_device(a.function, "pred", a.pred, "target", OptionalTensor(a.target));
  check_device(a.function, "pred", a.pred, "offsets", OptionalTensor(a.offsets));
  BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_CHECK_DEVICE)

  p.pred.dtype = dtype_of(a.function, "pred", a.pred, kFloatingDTypes);
  p.target.dtype = dtype_of(a.function, "target", a.target);
  p.offsets = later(a.function, "offsets", a.offsets, kIndexDTypes);
  p.labels = later(a.function, "labels", a.labels, kIndexDTypes);
  const auto set_scores = [&](const char* argument, const at::Tensor& scores) {
    p.scores.data = kLater;
    p.scores.dtype = dtype_of(a.function, argument, scores, kFloatingDTypes);
    check_floating(a.function, argument, p.scores.dtype);
  };
  if (a.logits) set_scores("logits", *a.logits);
  if (a.class_cost) set_scores("class_cost", *a.class_cost);

  check_boxes_shape(a.function, "pred", a.pred);
  check_boxes_shape(a.function, "target", a.target);
  TORCH_CHECK_VALUE(a.pred.dim() >= 3, a.function, ": pred has shape ", a.pred.sym_sizes(),
                    "; it must be (..., images, queries, 4)");
  TORCH_CHECK_VALUE(a.target.dim() == 2, a.function, ": target has shape ", a.target.sym_sizes(),
                    "; it must be (boxes of all images, 4)");
  check_shape(a.function, "offsets", a.offsets, {a.pred.sym_size(-3) + 1},
              "one more than pred has images");
  if (a.logits) check_logits(a);
  if (a.class_cost) check_class_cost(a);
  return p;
}

}  // namespace boxloss::torch_binding
