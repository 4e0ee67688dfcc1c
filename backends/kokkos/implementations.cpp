// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/backend.hpp>
#include <vector>

#include "dispatch/box_loss/with_pairing.hpp"
#include "kernels/box_loss/pair_args.hpp"
#include "kokkos_runtime.hpp"
#include "operations.hpp"
#include "workspace.hpp"

namespace boxloss::kokkos {

namespace {

/// All that is served, in one space.
template <class Space>
Implementation implementation(const char* name) {
  Implementation self;
  self.name = name;
  self.priority = 50;
  self.box_loss.losses = kLosses;
  self.box_loss.pairings = kPairings;
  self.box_loss.extras = kExtras;
  self.box_loss.workspace_bytes = [](const LossProblem&) { return kSumsBytes<LossesPartial>; };
  self.box_loss.forward = forward<Space>;
  self.box_loss.backward = backward<Space>;
  self.rotated_box_loss.losses = kRotatedLosses;
  self.rotated_box_loss.pairings = kPairings;
  self.rotated_box_loss.extras = {Extra::kIou};
  self.rotated_box_loss.workspace_bytes = [](const RotatedLossProblem&) {
    return kSumsBytes<LossesPartial>;
  };
  self.rotated_box_loss.forward = forward<Space>;
  self.rotated_box_loss.backward = backward<Space>;
  self.matching_cost.losses = kLosses;
  self.matching_cost.class_terms = kClassTerms;
  self.matching_cost.run = matching_cost<Space>;
  self.rotated_matching_cost.losses = kRotatedLosses;
  self.rotated_matching_cost.class_terms = kClassTerms;
  self.rotated_matching_cost.run = matching_cost<Space>;
  self.assign.workspace_bytes = workspace_bytes;
  self.assign.run = assign<Space>;
  self.max_iou_match.workspace_bytes = workspace_bytes;
  self.max_iou_match.run = max_iou_match<Space>;
  self.rotated_max_iou_match = self.max_iou_match;
  self.task_aligned_match.workspace_bytes = workspace_bytes;
  self.task_aligned_match.run = task_aligned_match<Space>;
  self.rotated_task_aligned_match = self.task_aligned_match;
  self.collate_targets.run = collate_targets<Space>;
  self.class_loss.workspace_bytes = workspace_bytes;
  self.class_loss.run = class_loss<Space>;
  self.class_loss_backward.workspace_bytes = [](const ClassLossGradProblem&) {
    return std::size_t{0};
  };
  self.class_loss_backward.run = class_loss_backward<Space>;
  self.distribution_loss.workspace_bytes = workspace_bytes;
  self.distribution_loss.run = distribution_loss<Space>;
  self.distribution_loss_backward.workspace_bytes = [](const DistributionLossGradProblem&) {
    return std::size_t{0};
  };
  self.distribution_loss_backward.run = distribution_loss_backward<Space>;
  return self;
}

}  // namespace

/// One for each execution space of this Kokkos.
std::vector<Implementation> implementations() {
  std::vector<Implementation> all = {implementation<HostSpace>("cpu/kokkos")};
#if defined(KOKKOS_ENABLE_CUDA)
  all.push_back(implementation<DeviceSpace>("cuda/kokkos"));
#elif defined(KOKKOS_ENABLE_HIP)
  all.push_back(implementation<DeviceSpace>("hip/kokkos"));
#endif
  return all;
}

}  // namespace boxloss::kokkos

#if defined(BOXLOSS_BUILT_ALONE)
BOXLOSS_BACKEND(boxloss::kokkos::implementations);
#endif
