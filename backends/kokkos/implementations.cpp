// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "kokkos_runtime.hpp"
#include "pair_workspace.hpp"
#include "pairings/with_pairing.hpp"
#include "passes.hpp"
#include "src/backends.hpp"

namespace boxloss {
namespace {

std::size_t workspace_bytes(const LossProblem&) { return kokkos::kWorkspaceBytes; }

}  // namespace

std::vector<Implementation> kokkos::implementations() {
  std::vector<Implementation> all = {{"cpu/kokkos", Device::kCpu, 50, kLosses, kPairings, kExtras,
                                      kClassTerms, workspace_bytes, forward_on_host,
                                      backward_on_host, matching_cost_on_host}};
#if defined(KOKKOS_ENABLE_CUDA)
  all.push_back({"cuda/kokkos", Device::kCuda, 50, kLosses, kPairings, kExtras, kClassTerms,
                 workspace_bytes, forward_on_device, backward_on_device, matching_cost_on_device});
#elif defined(KOKKOS_ENABLE_HIP)
  all.push_back({"hip/kokkos", Device::kHip, 50, kLosses, kPairings, kExtras, kClassTerms,
                 workspace_bytes, forward_on_device, backward_on_device, matching_cost_on_device});
#endif
  return all;
}

}  // namespace boxloss
