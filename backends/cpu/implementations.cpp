// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/registry.hpp>
#include <vector>

#include "cpu/operations.hpp"
#include "dispatch/box_loss/with_pairing.hpp"

namespace boxloss::cpu {

std::vector<Implementation> implementations() {
  Implementation fast;
  fast.name = "cpu/native";
  fast.priority = 100;
  fast.box_loss.losses = kLosses;
  fast.box_loss.pairings = kPairings;
  fast.box_loss.extras = kExtras;
  fast.box_loss.workspace_bytes = native::workspace_bytes;
  fast.box_loss.forward = native::forward;
  fast.box_loss.backward = native::backward;
  fast.matching_cost.losses = kLosses;
  fast.matching_cost.class_terms = kClassTerms;
  fast.matching_cost.run = native::matching_cost;
  fast.assign.workspace_bytes = native::workspace_bytes;
  fast.assign.run = native::assign;
  fast.max_iou_match.workspace_bytes = native::workspace_bytes;
  fast.max_iou_match.run = native::max_iou_match;
  fast.rotated_max_iou_match = fast.max_iou_match;
  fast.task_aligned_match.workspace_bytes = native::workspace_bytes;
  fast.task_aligned_match.run = native::task_aligned_match;
  fast.rotated_task_aligned_match = fast.task_aligned_match;
  fast.collate_targets.run = native::collate_targets;
  fast.class_loss.workspace_bytes = native::workspace_bytes;
  fast.class_loss.run = native::class_loss;
  fast.class_loss_backward.workspace_bytes = [](const ClassLossGradProblem&) {
    return std::size_t{0};
  };
  fast.class_loss_backward.run = native::class_loss_backward;
  fast.distribution_loss.workspace_bytes = native::workspace_bytes;
  fast.distribution_loss.run = native::distribution_loss;
  fast.distribution_loss_backward.workspace_bytes = [](const DistributionLossGradProblem&) {
    return std::size_t{0};
  };
  fast.distribution_loss_backward.run = native::distribution_loss_backward;
  fast.rotated_box_loss.losses = kRotatedLosses;
  fast.rotated_box_loss.pairings = kPairings;
  fast.rotated_box_loss.extras = {Extra::kIou};
  fast.rotated_box_loss.workspace_bytes = native::workspace_bytes;
  fast.rotated_box_loss.forward = native::forward;
  fast.rotated_box_loss.backward = native::backward;
  fast.rotated_matching_cost.losses = kRotatedLosses;
  fast.rotated_matching_cost.class_terms = kClassTerms;
  fast.rotated_matching_cost.run = native::matching_cost;

  Implementation oracle;
  oracle.name = "cpu/reference";
  oracle.box_loss.losses = kLosses;
  oracle.box_loss.pairings = {Pairing::Kind::kDense,   Pairing::Kind::kZeroPadded,
                              Pairing::Kind::kLengths, Pairing::Kind::kMask,
                              Pairing::Kind::kOffsets, Pairing::Kind::kIndexed};
  oracle.box_loss.extras = kExtras;
  oracle.box_loss.workspace_bytes = [](const LossProblem&) { return std::size_t{0}; };
  oracle.box_loss.forward = reference::forward;
  oracle.box_loss.backward = reference::backward;
  oracle.matching_cost.losses = kLosses;
  oracle.matching_cost.class_terms = kClassTerms;
  oracle.matching_cost.run = reference::matching_cost;
  oracle.assign.workspace_bytes = [](const AssignProblem&) { return std::size_t{0}; };
  oracle.assign.run = reference::assign;
  oracle.max_iou_match.workspace_bytes = [](const MaxIouProblem&) { return std::size_t{0}; };
  oracle.max_iou_match.run = reference::max_iou_match;
  oracle.rotated_max_iou_match = oracle.max_iou_match;
  oracle.task_aligned_match.workspace_bytes = [](const TaskAlignedProblem&) {
    return std::size_t{0};
  };
  oracle.task_aligned_match.run = reference::task_aligned_match;
  oracle.rotated_task_aligned_match = oracle.task_aligned_match;
  oracle.collate_targets.run = native::collate_targets;
  oracle.class_loss.workspace_bytes = [](const ClassLossProblem&) { return std::size_t{0}; };
  oracle.class_loss.run = reference::class_loss;
  oracle.class_loss_backward.workspace_bytes = [](const ClassLossGradProblem&) {
    return std::size_t{0};
  };
  oracle.class_loss_backward.run = reference::class_loss_backward;
  oracle.distribution_loss.workspace_bytes = [](const DistributionLossProblem&) {
    return std::size_t{0};
  };
  oracle.distribution_loss.run = reference::distribution_loss;
  oracle.distribution_loss_backward.workspace_bytes = [](const DistributionLossGradProblem&) {
    return std::size_t{0};
  };
  oracle.distribution_loss_backward.run = reference::distribution_loss_backward;
  oracle.rotated_box_loss.losses = kRotatedLosses;
  oracle.rotated_box_loss.pairings = oracle.box_loss.pairings;
  oracle.rotated_box_loss.extras = {Extra::kIou};
  oracle.rotated_box_loss.workspace_bytes = [](const RotatedLossProblem&) {
    return std::size_t{0};
  };
  oracle.rotated_box_loss.forward = reference::forward;
  oracle.rotated_box_loss.backward = reference::backward;
  oracle.rotated_matching_cost.losses = kRotatedLosses;
  oracle.rotated_matching_cost.class_terms = kClassTerms;
  oracle.rotated_matching_cost.run = reference::matching_cost;
  return {fast, oracle};
}

}  // namespace boxloss::cpu
