// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <boxloss/registry.hpp>
#include <vector>

#include "box_loss/workspace.hpp"
#include "dispatch/box_loss/with_pairing.hpp"
#include "operations.hpp"

namespace boxloss::BOXLOSS_GPU {

std::vector<Implementation> implementations() {
  Implementation self;
  self.name = kName;
  self.priority = 100;
  self.box_loss.losses = kLosses;
  self.box_loss.pairings = kPairings;
  self.box_loss.extras = kExtras;
  self.box_loss.workspace_bytes = [](const LossProblem&) { return kWorkspaceBytes; };
  self.box_loss.forward = forward;
  self.box_loss.backward = backward;
  self.rotated_box_loss.losses = kRotatedLosses;
  self.rotated_box_loss.pairings = kPairings;
  self.rotated_box_loss.extras = {Extra::kIou};
  self.rotated_box_loss.workspace_bytes = [](const RotatedLossProblem&) { return kWorkspaceBytes; };
  self.rotated_box_loss.forward = forward;
  self.rotated_box_loss.backward = backward;
  self.matching_cost.losses = kLosses;
  self.matching_cost.class_terms = kClassTerms;
  self.matching_cost.run = matching_cost;
  self.rotated_matching_cost.losses = kRotatedLosses;
  self.rotated_matching_cost.class_terms = kClassTerms;
  self.rotated_matching_cost.run = matching_cost;
  self.assign.workspace_bytes = workspace_bytes;
  self.assign.run = assign;
  self.max_iou_match.workspace_bytes = workspace_bytes;
  self.max_iou_match.run = max_iou_match;
  self.rotated_max_iou_match = self.max_iou_match;
  self.task_aligned_match.workspace_bytes = workspace_bytes;
  self.task_aligned_match.run = task_aligned_match;
  self.rotated_task_aligned_match = self.task_aligned_match;
  self.collate_targets.run = collate_targets;
  self.class_loss.workspace_bytes = workspace_bytes;
  self.class_loss.run = class_loss;
  self.class_loss_backward.workspace_bytes = [](const ClassLossGradProblem&) {
    return std::size_t{0};
  };
  self.class_loss_backward.run = class_loss_backward;
  self.distribution_loss.workspace_bytes = workspace_bytes;
  self.distribution_loss.run = distribution_loss;
  self.distribution_loss_backward.workspace_bytes = [](const DistributionLossGradProblem&) {
    return std::size_t{0};
  };
  self.distribution_loss_backward.run = distribution_loss_backward;
  return {self};
}

}  // namespace boxloss::BOXLOSS_GPU
