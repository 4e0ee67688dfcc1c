// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>
#include <boxloss/execution.hpp>

#include "pair_workspace.hpp"

/// Kokkos' life in a process that may or may not know of it, and the caller's streams as its
/// execution-space instances.
namespace boxloss::kokkos {

using HostSpace = Kokkos::DefaultHostExecutionSpace;
using DeviceSpace = Kokkos::DefaultExecutionSpace;

/// Initialises Kokkos when nobody has. What is initialised here is finalised at exit; what the
/// program itself initialised is the program's to finalise. Throws NoDevice where Kokkos was built
/// for a GPU that is missing, DeviceError when Kokkos was finalised.
void ensure_initialized();

/// Gives the current GPU back at the end of its life.
class KeepDevice {
 public:
  KeepDevice();
  ~KeepDevice();
  KeepDevice(const KeepDevice&) = delete;
  KeepDevice& operator=(const KeepDevice&) = delete;

 private:
  int device_ = 0;
};

/// What a call runs with.
template <class Space>
struct Call {
  Space space;
  /// Zero, and used by no other launch at the same time; null where there is none to be had.
  Counter* arrivals = nullptr;
};

/// For the length of one call: the execution's GPU is current, and `space` stands for its stream.
/// That instance is made by the first call on a stream, which allocates and must therefore come
/// before any capture; it is released when Kokkos is finalised.
struct DeviceCall : private KeepDevice, Call<DeviceSpace> {
  explicit DeviceCall(const Execution& execution);
};

/// Throws DeviceError if the launch just made has failed.
void check_launch();

}  // namespace boxloss::kokkos
