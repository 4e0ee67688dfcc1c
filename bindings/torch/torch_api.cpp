// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/torch.hpp>
#include <string_view>
#include <tuple>

#include "../common/assign.hpp"
#include "../common/box_loss.hpp"
#include "../common/linear_sum_assignment.hpp"
#include "../common/matching_cost.hpp"
#include "../common/max_iou_match.hpp"
#include "../common/rotated_box_loss.hpp"
#include "../common/task_aligned_match.hpp"
#include "box_loss/args.hpp"
#include "class_loss.hpp"
#include "distribution_loss.hpp"

/// boxloss/torch.hpp: converts enumerators to strings and undefined tensors to none, and calls the
/// operators.
namespace boxloss {
namespace {

using torch_binding::LossArgs;
using torch_binding::OperatorOf;
using torch_binding::OptionalTensor;

OptionalTensor as_argument(const at::Tensor& option) {
  return option.defined() ? OptionalTensor(option) : std::nullopt;
}
bool as_argument(bool option) { return option; }
double as_argument(double option) { return option; }
std::optional<double> as_argument(std::optional<double> option) { return option; }
std::vector<double> as_argument(const std::vector<double>& option) { return option; }
std::int64_t as_argument(std::int64_t option) { return option; }
std::optional<std::int64_t> as_argument(std::optional<std::int64_t> option) { return option; }
template <class Enum>
std::string_view as_argument(Enum option) {
  return name_of(option);
}

/// A member of the options for each option in the list.
#define BOXLOSS_AS_ARGUMENT(Kind, name, standard) , as_argument(options.name)

LossArgs<binding::BoxLoss> make_args(const at::Tensor& pred, const at::Tensor& target,
                                     const BoxLossOptions& options) {
  return {{pred, target BOXLOSS_BOX_LOSS_OPTIONS(BOXLOSS_AS_ARGUMENT)}};
}

/// Offsets that are on the CPU may come along.
at::Tensor offsets_beside(const at::Tensor& tensor, const at::Tensor& offsets) {
  return offsets.is_cpu()
             ? offsets.to(tensor.device(), offsets.scalar_type(), /*non_blocking=*/true)
             : offsets;
}

}  // namespace

at::Tensor box_loss(const at::Tensor& pred, const at::Tensor& target,
                    const BoxLossOptions& options) {
  return torch_binding::call_loss(make_args(pred, target, options));
}

BoxLosses box_losses(const at::Tensor& pred, const at::Tensor& target,
                     const BoxLossOptions& options) {
  const auto [loss, l1, iou] = torch_binding::call_losses(make_args(pred, target, options));
  return {loss, l1, iou};
}

at::Tensor rotated_box_loss(const at::Tensor& pred, const at::Tensor& target,
                            const RotatedBoxLossOptions& options) {
  return torch_binding::call_loss<binding::RotatedBoxLoss>(
      {{pred, target,
        as_argument(options.loss) BOXLOSS_ROTATED_BOX_LOSS_OPTIONS(BOXLOSS_AS_ARGUMENT)}});
}

at::Tensor matching_cost(const at::Tensor& pred, const at::Tensor& target,
                         const at::Tensor& offsets, const MatchingCostOptions& options) {
  return OperatorOf<binding::MatchingCost>::call(
      {pred, target, offsets BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_AS_ARGUMENT)});
}

MatchResult hungarian_match(const at::Tensor& cost, const at::Tensor& offsets,
                            const HungarianMatchOptions& options) {
  const auto [pred_index, target_index, target_of_query] =
      OperatorOf<binding::Assign>::call({cost, offsets_beside(cost, offsets), options.groups});
  return {pred_index, target_index, target_of_query};
}

LinearSumAssignment linear_sum_assignment(const at::Tensor& cost,
                                          const LinearSumAssignmentOptions& given) {
  LinearSumAssignmentOptions options = given;
  if (options.lengths.defined()) options.lengths = offsets_beside(cost, options.lengths);
  const auto [column_of_row, row_of_column] = OperatorOf<binding::LinearSumAssignment>::call(
      {cost BOXLOSS_LINEAR_SUM_ASSIGNMENT_OPTIONS(BOXLOSS_AS_ARGUMENT)});
  return {column_of_row, row_of_column};
}

at::Tensor pairwise_iou(const at::Tensor& pred, const at::Tensor& target, const at::Tensor& offsets,
                        const PairwiseIouOptions& options) {
  return OperatorOf<binding::PairwiseIou>::call(
      {pred, target, offsets BOXLOSS_PAIRWISE_IOU_OPTIONS(BOXLOSS_AS_ARGUMENT)});
}

MaxIouMatch max_iou_match(const at::Tensor& anchors, const at::Tensor& target,
                          const at::Tensor& offsets, const MaxIouMatchOptions& options) {
  const auto [target_index, iou] = OperatorOf<binding::MaxIouMatch>::call(
      {anchors, target, offsets_beside(anchors, offsets), options.high,
       options.low BOXLOSS_MAX_IOU_MATCH_OPTIONS(BOXLOSS_AS_ARGUMENT)});
  return {target_index, iou};
}

TaskAlignedMatch task_aligned_match(const at::Tensor& scores, const at::Tensor& pred,
                                    const at::Tensor& points, const at::Tensor& target,
                                    const at::Tensor& offsets, const at::Tensor& labels,
                                    const TaskAlignedMatchOptions& options) {
  const at::Tensor own_offsets = offsets.defined() ? offsets_beside(scores, offsets) : offsets;
  const auto [target_index, score, overlap] = OperatorOf<binding::TaskAlignedMatch>::call(
      {scores, pred, points, target, as_argument(own_offsets),
       labels BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(BOXLOSS_AS_ARGUMENT)});
  return {target_index, score, overlap};
}

at::Tensor class_loss(const at::Tensor& logits, const at::Tensor& target_index,
                      const at::Tensor& labels, const ClassLossOptions& options) {
  return torch_binding::call_class_loss({logits, target_index, labels,
                                         as_argument(options.mode)
                                             BOXLOSS_CLASS_LOSS_OPTIONS(BOXLOSS_AS_ARGUMENT)});
}

at::Tensor distribution_loss(const at::Tensor& logits, const at::Tensor& target_index,
                             const DistributionLossOptions& options) {
  return torch_binding::call_distribution_loss(
      {logits, target_index,
       as_argument(options.mode) BOXLOSS_DISTRIBUTION_LOSS_OPTIONS(BOXLOSS_AS_ARGUMENT)});
}

}  // namespace boxloss
