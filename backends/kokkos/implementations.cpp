// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/backend.hpp>
#include <vector>

#include "kokkos_runtime.hpp"
#include "operations.hpp"

namespace boxloss::kokkos {

/// One for each execution space of this Kokkos.
std::vector<Implementation> implementations() {
  constexpr int kPriority = 50;
  std::vector<Implementation> all = {
      implementation<Operations<HostSpace>>("cpu/kokkos", kPriority)};
#if defined(KOKKOS_ENABLE_CUDA)
  all.push_back(implementation<Operations<DeviceSpace>>("cuda/kokkos", kPriority));
#elif defined(KOKKOS_ENABLE_HIP)
  all.push_back(implementation<Operations<DeviceSpace>>("hip/kokkos", kPriority));
#endif
  return all;
}

}  // namespace boxloss::kokkos

#if defined(BOXLOSS_BUILT_ALONE)
BOXLOSS_BACKEND(boxloss::kokkos::implementations);
#endif
