// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kokkos_runtime.hpp"
#include "launch.hpp"

/// How each source file of kernels is called.
namespace boxloss::kokkos {

/// Runs function(space): on the execution's device and stream, or on the host, where a caller reads
/// its result at once.
template <class Space, class Function>
void call([[maybe_unused]] const char* name, [[maybe_unused]] const Execution& execution,
          const Function& function) {
  with_device_errors([&] {
    if constexpr (kIsHost<Space>) {
      ensure_initialized();
      const Space space;
      function(space);
      space.fence(name);
    } else {
      const DeviceCall device(execution);
      function(device.space);
      check_launch();
    }
  });
}

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
#define BOXLOSS_KOKKOS_DEVICE

namespace {

struct NoWork {
  KOKKOS_FUNCTION void operator()(const Kokkos::TeamPolicy<DeviceSpace>::member_type&) const {}
};

/// It requests scratch memory that nothing uses, since an instance without any asks for some in
/// every launch.
[[maybe_unused]] void launch_nothing(const DeviceSpace& space) {
  Kokkos::TeamPolicy<DeviceSpace> policy(space, 1, 1);
  policy.set_scratch_size(1, Kokkos::PerTeam(1));
  Kokkos::parallel_for("boxloss::warm_up", policy, NoWork());
}

}  // namespace
#endif

}  // namespace boxloss::kokkos
