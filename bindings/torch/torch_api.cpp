// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/torch.hpp>
#include <string_view>
#include <tuple>

#include "box_loss_args.hpp"

/// boxloss/torch.hpp: converts enumerators to strings and undefined tensors to none, and calls the
/// operators.
namespace boxloss {
namespace {

using torch_binding::LossArgs;
using torch_binding::OptionalTensor;

OptionalTensor as_argument(const at::Tensor& option) {
  return option.defined() ? OptionalTensor(option) : std::nullopt;
}
bool as_argument(bool option) { return option; }
double as_argument(double option) { return option; }
std::optional<double> as_argument(std::optional<double> option) { return option; }
std::int64_t as_argument(std::int64_t option) { return option; }
std::optional<std::int64_t> as_argument(std::optional<std::int64_t> option) { return option; }
template <class Enum>
std::string_view as_argument(Enum option) {
  return name_of(option);
}

/// A member of the options for each option in the list.
#define BOXLOSS_AS_ARGUMENT(Kind, name, standard) , as_argument(options.name)

LossArgs make_args(const at::Tensor& pred, const at::Tensor& target,
                   const BoxLossOptions& options) {
  return {pred, target BOXLOSS_BOX_LOSS_OPTIONS(BOXLOSS_AS_ARGUMENT)};
}

/// Offsets that are on the CPU may come along.
at::Tensor offsets_beside(const at::Tensor& tensor, const at::Tensor& offsets) {
  return offsets.is_cpu()
             ? offsets.to(tensor.device(), offsets.scalar_type(), /*non_blocking=*/true)
             : offsets;
}

/// The operator of that name, whose arguments have the types of the tuple's.
template <class Result = at::Tensor, class... Arguments>
auto find(const char* name, const std::tuple<Arguments...>&) {
  return torch_binding::find_operator<Result(torch_binding::Parameter<Arguments>...)>(name);
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
  const std::tuple arguments(pred, target,
                             offsets BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_AS_ARGUMENT));
  static const auto op = find("boxloss::matching_cost", arguments);
  return torch_binding::call_with(op, arguments);
}

MatchResult hungarian_match(const at::Tensor& cost, const at::Tensor& offsets,
                            const HungarianMatchOptions& options) {
  using Assigned = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
  static const auto op =
      torch_binding::find_operator<Assigned(const at::Tensor&, const at::Tensor&, std::int64_t)>(
          "boxloss::assign");
  const auto [pred_index, target_index, target_of_query] =
      op.call(cost, offsets_beside(cost, offsets), options.groups);
  return {pred_index, target_index, target_of_query};
}

at::Tensor pairwise_iou(const at::Tensor& pred, const at::Tensor& target, const at::Tensor& offsets,
                        const PairwiseIouOptions& options) {
  const std::tuple arguments(pred, target,
                             offsets BOXLOSS_PAIRWISE_IOU_OPTIONS(BOXLOSS_AS_ARGUMENT));
  static const auto op = find("boxloss::pairwise_iou", arguments);
  return torch_binding::call_with(op, arguments);
}

MaxIouMatch max_iou_match(const at::Tensor& anchors, const at::Tensor& target,
                          const at::Tensor& offsets, const MaxIouMatchOptions& options) {
  const at::Tensor own_offsets = offsets_beside(anchors, offsets);
  const std::tuple arguments(anchors, target, own_offsets, options.high,
                             options.low BOXLOSS_MAX_IOU_MATCH_OPTIONS(BOXLOSS_AS_ARGUMENT));
  using Matched = std::tuple<at::Tensor, at::Tensor>;
  static const auto op = find<Matched>("boxloss::max_iou_match", arguments);
  const auto [target_index, iou] = torch_binding::call_with(op, arguments);
  return {target_index, iou};
}

TaskAlignedMatch task_aligned_match(const at::Tensor& scores, const at::Tensor& pred,
                                    const at::Tensor& points, const at::Tensor& target,
                                    const at::Tensor& offsets, const at::Tensor& labels,
                                    const TaskAlignedMatchOptions& options) {
  const at::Tensor own_offsets = offsets.defined() ? offsets_beside(scores, offsets) : offsets;
  const std::tuple arguments(scores, pred, points, target, as_argument(own_offsets),
                             labels BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(BOXLOSS_AS_ARGUMENT));
  using Matched = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
  static const auto op = find<Matched>("boxloss::task_aligned_match", arguments);
  const auto [target_index, score, overlap] = torch_binding::call_with(op, arguments);
  return {target_index, score, overlap};
}

}  // namespace boxloss
