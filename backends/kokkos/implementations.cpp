// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "giou_kokkos.hpp"
#include "kokkos_runtime.hpp"
#include "pair_workspace.hpp"
#include "src/backends.hpp"

namespace boxloss {
namespace {

std::string supports_all(const GiouLossProblem&) { return {}; }

std::size_t workspace_bytes(const GiouLossProblem&) { return kokkos::kWorkspaceBytes; }

}  // namespace

std::vector<Implementation> kokkos::implementations() {
  std::vector<Implementation> all = {{"cpu/kokkos", Device::kCpu, 50, supports_all, workspace_bytes,
                                      giou_forward_on_host, giou_backward_on_host}};
#if defined(KOKKOS_ENABLE_CUDA)
  all.push_back({"cuda/kokkos", Device::kCuda, 50, supports_all, workspace_bytes,
                 giou_forward_on_device, giou_backward_on_device});
#elif defined(KOKKOS_ENABLE_HIP)
  all.push_back({"hip/kokkos", Device::kHip, 50, supports_all, workspace_bytes,
                 giou_forward_on_device, giou_backward_on_device});
#endif
  return all;
}

}  // namespace boxloss
