// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <boxloss/torch.hpp>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "../options.hpp"

/// boxloss/torch.hpp: converts enumerators to strings and undefined tensors to none, and calls the
/// operators.
namespace boxloss {
namespace {

/// Words are kept, since one is two allocations: enumerators have few.
const c10::IValue& kept(const char* word) {
  thread_local std::unordered_map<const char*, c10::IValue> words;
  c10::IValue& value = words[word];
  if (value.isNone()) value = std::string(word);
  return value;
}

template <class Option>
c10::IValue as_argument(const Option& option) {
  if constexpr (requires { name_of(option); }) {
    return kept(name_of(option));
  } else if constexpr (std::is_same_v<Option, at::Tensor>) {
    return option.defined() ? option : c10::IValue();
  } else if constexpr (std::is_same_v<Option, std::vector<double>>) {
    static const c10::IValue none = c10::List<double>();
    return option.empty() ? none : c10::IValue(option);
  } else {
    return option;
  }
}

/// A member of the options for each option in the list.
#define BOXLOSS_AS_ARGUMENT(Kind, name, standard) , as_argument(options.name)

c10::OperatorHandle find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

/// The results as tensors, through the dispatcher.
template <std::size_t count = 1, class... Argument>
std::array<at::Tensor, count> call(const c10::OperatorHandle& op, Argument&&... arguments) {
  torch::jit::Stack stack;
  stack.reserve(sizeof...(Argument));
  (stack.emplace_back(std::forward<Argument>(arguments)), ...);
  op.callBoxed(stack);
  std::array<at::Tensor, count> results;
  for (std::size_t i = 0; i < count; ++i) results[i] = std::move(stack[i]).toTensor();
  return results;
}

/// Offsets that are on the CPU may come along.
at::Tensor offsets_beside(const at::Tensor& tensor, const at::Tensor& offsets) {
  if (!offsets.defined() || !offsets.is_cpu()) return offsets;
  return offsets.to(tensor.device(), offsets.scalar_type(), /*non_blocking=*/true);
}

}  // namespace

at::Tensor box_loss(const at::Tensor& pred, const at::Tensor& target,
                    const BoxLossOptions& options) {
  static const auto op = find("boxloss::box_loss");
  return call(op, pred, target BOXLOSS_BOX_LOSS_OPTIONS(BOXLOSS_AS_ARGUMENT))[0];
}

BoxLosses box_losses(const at::Tensor& pred, const at::Tensor& target,
                     const BoxLossOptions& options) {
  static const auto op = find("boxloss::box_losses");
  const auto [loss, l1, iou] =
      call<3>(op, pred, target BOXLOSS_BOX_LOSS_OPTIONS(BOXLOSS_AS_ARGUMENT));
  return {loss, l1, iou};
}

at::Tensor rotated_box_loss(const at::Tensor& pred, const at::Tensor& target,
                            const RotatedBoxLossOptions& options) {
  static const auto op = find("boxloss::rotated_box_loss");
  return call(op, pred, target,
              as_argument(options.loss) BOXLOSS_ROTATED_BOX_LOSS_OPTIONS(BOXLOSS_AS_ARGUMENT))[0];
}

at::Tensor matching_cost(const at::Tensor& pred, const at::Tensor& target,
                         const at::Tensor& offsets, const MatchingCostOptions& options) {
  static const auto op = find("boxloss::matching_cost");
  return call(op, pred, target, offsets BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_AS_ARGUMENT))[0];
}

MatchResult hungarian_match(const at::Tensor& cost, const at::Tensor& offsets,
                            const HungarianMatchOptions& options) {
  static const auto op = find("boxloss::assign");
  const auto [pred_index, target_index, target_of_query] =
      call<3>(op, cost, offsets_beside(cost, offsets), options.groups);
  return {pred_index, target_index, target_of_query};
}

LinearSumAssignment linear_sum_assignment(const at::Tensor& cost,
                                          const LinearSumAssignmentOptions& given) {
  static const auto op = find("boxloss::linear_sum_assignment");
  LinearSumAssignmentOptions options = given;
  options.lengths = offsets_beside(cost, options.lengths);
  const auto [column_of_row, row_of_column] =
      call<2>(op, cost BOXLOSS_LINEAR_SUM_ASSIGNMENT_OPTIONS(BOXLOSS_AS_ARGUMENT));
  return {column_of_row, row_of_column};
}

at::Tensor pairwise_iou(const at::Tensor& pred, const at::Tensor& target, const at::Tensor& offsets,
                        const PairwiseIouOptions& options) {
  static const auto op = find("boxloss::pairwise_iou");
  return call(op, pred, target, offsets BOXLOSS_PAIRWISE_IOU_OPTIONS(BOXLOSS_AS_ARGUMENT))[0];
}

MaxIouMatch max_iou_match(const at::Tensor& anchors, const at::Tensor& target,
                          const at::Tensor& offsets, const MaxIouMatchOptions& options) {
  static const auto op = find("boxloss::max_iou_match");
  const auto [target_index, iou] =
      call<2>(op, anchors, target, offsets_beside(anchors, offsets), options.high,
              options.low BOXLOSS_MAX_IOU_MATCH_OPTIONS(BOXLOSS_AS_ARGUMENT));
  return {target_index, iou};
}

TaskAlignedMatch task_aligned_match(const at::Tensor& scores, const at::Tensor& pred,
                                    const at::Tensor& points, const at::Tensor& target,
                                    const at::Tensor& offsets, const at::Tensor& labels,
                                    const TaskAlignedMatchOptions& options) {
  static const auto op = find("boxloss::task_aligned_match");
  const auto [target_index, score, overlap] =
      call<3>(op, scores, pred, points, target, as_argument(offsets_beside(scores, offsets)),
              labels BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(BOXLOSS_AS_ARGUMENT));
  return {target_index, score, overlap};
}

at::Tensor class_loss(const at::Tensor& logits, const at::Tensor& target_index,
                      const at::Tensor& labels, const ClassLossOptions& options) {
  static const auto op = find("boxloss::class_loss");
  return call(op, logits, target_index, labels,
              as_argument(options.mode) BOXLOSS_CLASS_LOSS_OPTIONS(BOXLOSS_AS_ARGUMENT))[0];
}

at::Tensor distribution_loss(const at::Tensor& logits, const at::Tensor& target_index,
                             const DistributionLossOptions& options) {
  static const auto op = find("boxloss::distribution_loss");
  return call(op, logits, target_index,
              as_argument(options.mode) BOXLOSS_DISTRIBUTION_LOSS_OPTIONS(BOXLOSS_AS_ARGUMENT))[0];
}

}  // namespace boxloss
