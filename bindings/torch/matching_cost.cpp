// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "matching_cost.hpp"

#include <ATen/ops/log_softmax.h>

/// matching_cost, and pairwise_iou, which is a cost of the loss alone. Neither has a gradient.
namespace boxloss::torch_binding {
namespace {

using CostOperator = OperatorOf<binding::MatchingCost>;

/// With leading dimensions that are one by their strides, and the last with neighbours if `packs`.
at::Tensor laid_out(const at::Tensor& tensor, bool packs) {
  if (tensor.is_contiguous()) return tensor;
  const auto shape = tensor.sizes();
  const std::int64_t blocks = c10::multiply_integers(shape.slice(0, shape.size() - 2));
  const at::Tensor merged =
      shape.size() < 4 ? tensor : tensor.reshape({blocks, shape.end()[-2], shape.end()[-1]});
  const bool has_neighbours = merged.stride(-1) == 1 || merged.size(-1) <= 1;
  return (packs && !has_neighbours ? merged.contiguous() : merged).view(shape);
}

CostTensors laid_out(const CostTensors& a, const PairwiseProblem& p) {
  CostTensors to = a;
  to.pred = laid_out(a.pred, /*packs=*/false);
  if (a.logits) {
    const bool is_softmax = p.class_term == ClassTerm::kSoftmax;
    to.logits = laid_out(is_softmax ? at::log_softmax(*a.logits, -1, compute_type(p)) : *a.logits,
                         /*packs=*/true);
  }
  if (a.class_cost) {
    const auto given = a.class_cost->sizes(), pred = a.pred.sizes();
    at::DimVector shape(pred.slice(0, pred.size() - 3));
    shape.append({pred.end()[-2], a.target.size(0)});
    const bool is_shared = c10::multiply_integers(given.slice(0, given.size() - 2)) == 1;
    to.class_cost = laid_out(is_shared ? *a.class_cost : a.class_cost->expand(shape), true);
  }
  return to;
}

/// Of symbolic sizes, which need no memory.
AnyCostProblem checked(const char* function, const CostTensors& tensors) {
  return with_torch_errors(function, [&] {
    return binding::MatchingCost::describe(
        Converted<binding::MatchingCost, c10::SymInt>(function, tensors).arguments());
  });
}

at::Tensor cost_of(const char* function, const CostTensors& tensors) {
  const AnyCostProblem p = checked(function, tensors);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (aten_is_chosen()) return composite_cost(tensors, p);
  return CostOperator::run_by(implementation_on, {.function = function}, laid_out(tensors, p));
}

at::Tensor cost(const CostTensors& tensors) {
  return cost_of(binding::MatchingCost::kFunction, tensors);
}

using Iou = binding::PairwiseIou;
at::Tensor iou(const TensorsOf<Iou>& tensors) {
  return cost_of(Iou::kFunction, Iou::as_cost(tensors));
}
at::Tensor iou_meta(const TensorsOf<Iou>& tensors) {
  return CostOperator::meta_of(Iou::kFunction, Iou::as_cost(tensors));
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss::torch_binding;
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  CostOperator::define<cost>(m, tags);
  CostOperator::be_constant(m);
  OperatorOf<Iou>::define<iou, iou_meta>(m, tags);
  OperatorOf<Iou>::be_constant(m);
}
