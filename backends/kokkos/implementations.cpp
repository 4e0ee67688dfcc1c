// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/backend.hpp>
#include <vector>

#include "dispatch/box_loss/with_pairing.hpp"
#include "kokkos_runtime.hpp"
#include "operations.hpp"
#include "workspace.hpp"

namespace boxloss::kokkos {

/// One for each execution space of this Kokkos.
std::vector<Implementation> implementations() {
  Implementation host;
  host.name = "cpu/kokkos";
  host.priority = 50;
  host.box_loss.losses = kLosses;
  host.box_loss.pairings = kPairings;
  host.box_loss.extras = kExtras;
  host.box_loss.workspace_bytes = [](const LossProblem&) { return kWorkspaceBytes; };
  host.box_loss.forward = forward_on_host;
  host.box_loss.backward = backward_on_host;
  host.rotated_box_loss.losses = kRotatedLosses;
  host.rotated_box_loss.pairings = kPairings;
  host.rotated_box_loss.extras = {Extra::kIou};
  host.rotated_box_loss.workspace_bytes = [](const RotatedLossProblem&) { return kWorkspaceBytes; };
  host.rotated_box_loss.forward = forward_on_host;
  host.rotated_box_loss.backward = backward_on_host;
  host.matching_cost.losses = kLosses;
  host.matching_cost.class_terms = kClassTerms;
  host.matching_cost.run = matching_cost_on_host;
  host.rotated_matching_cost.losses = kRotatedLosses;
  host.rotated_matching_cost.class_terms = kClassTerms;
  host.rotated_matching_cost.run = matching_cost_on_host;
  std::vector<Implementation> all = {host};
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
  Implementation device = host;
#if defined(KOKKOS_ENABLE_CUDA)
  device.name = "cuda/kokkos";
#else
  device.name = "hip/kokkos";
#endif
  device.box_loss.forward = forward_on_device;
  device.box_loss.backward = backward_on_device;
  device.rotated_box_loss.forward = forward_on_device;
  device.rotated_box_loss.backward = backward_on_device;
  device.matching_cost.run = matching_cost_on_device;
  device.rotated_matching_cost.run = matching_cost_on_device;
  all.push_back(device);
#endif
  return all;
}

}  // namespace boxloss::kokkos

#if defined(BOXLOSS_BUILT_ALONE)
BOXLOSS_BACKEND(boxloss::kokkos::implementations);
#endif
