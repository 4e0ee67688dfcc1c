// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/dispatch/Dispatcher.h>

#include <boxloss/torch.hpp>
#include <string_view>
#include <tuple>

#include "loss_args.hpp"

/// boxloss/torch.hpp: converts enumerators to strings and undefined tensors to none, and calls the
/// operators.
namespace boxloss {
namespace {

using torch_binding::LossArgs;
using torch_binding::OptionalTensor;
using torch_binding::Parameter;

OptionalTensor given(const at::Tensor& option) {
  return option.defined() ? OptionalTensor(option) : std::nullopt;
}

template <class Enum>
std::string_view word(Enum value) {
  return name_of(value);
}

LossArgs make_args(const at::Tensor& pred, const at::Tensor& target, const BoxLossOptions& o) {
  return {pred,
          target,
          word(o.loss),
          given(o.weight),
          given(o.normalizer),
          given(o.lengths),
          given(o.mask),
          given(o.offsets),
          o.zero_padded,
          word(o.pred_format),
          word(o.target_format),
          word(o.reduction),
          o.eps,
          word(o.eps_mode),
          given(o.pred_index),
          given(o.target_index)};
}

/// The operator of that name, with the type that its arguments have.
template <class... Arguments>
auto find(const char* name, const std::tuple<Arguments...>&) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<at::Tensor(Parameter<const Arguments&>...)>();
}

}  // namespace

at::Tensor box_loss(const at::Tensor& pred, const at::Tensor& target,
                    const BoxLossOptions& options) {
  return torch_binding::call_box_loss(make_args(pred, target, options));
}

BoxLosses box_losses(const at::Tensor& pred, const at::Tensor& target,
                     const BoxLossOptions& options) {
  const auto [loss, l1, iou] = torch_binding::call_box_losses(make_args(pred, target, options));
  return {loss, l1, iou};
}

at::Tensor matching_cost(const at::Tensor& pred, const at::Tensor& target,
                         const at::Tensor& offsets, const MatchingCostOptions& options) {
  const MatchingCostOptions& o = options;
  const std::tuple arguments(
      pred, target, offsets, given(o.logits), given(o.labels), given(o.class_cost), word(o.loss),
      o.iou_weight, o.l1_weight, o.class_weight, word(o.class_mode), o.focal_alpha, o.focal_gamma,
      word(o.pred_format), word(o.target_format), o.eps, word(o.eps_mode), o.nonfinite);
  static const auto op = find("boxloss::matching_cost", arguments);
  return std::apply([](const auto&... each) { return op.call(each...); }, arguments);
}

at::Tensor pairwise_iou(const at::Tensor& pred, const at::Tensor& target, const at::Tensor& offsets,
                        const PairwiseIouOptions& options) {
  const PairwiseIouOptions& o = options;
  const std::tuple arguments(pred, target, offsets, word(o.loss), word(o.pred_format),
                             word(o.target_format), o.eps, word(o.eps_mode));
  static const auto op = find("boxloss::pairwise_iou", arguments);
  return std::apply([](const auto&... each) { return op.call(each...); }, arguments);
}

}  // namespace boxloss
