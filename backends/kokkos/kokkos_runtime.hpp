// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>
#include <boxloss/error.hpp>
#include <boxloss/execution.hpp>
#include <exception>

#include "src/message.hpp"
#include "workspace.hpp"

/// Initializes and finalizes Kokkos if the process does not, and turns the caller's streams into
/// execution-space instances.
namespace boxloss::kokkos {

using HostSpace = Kokkos::DefaultHostExecutionSpace;
using DeviceSpace = Kokkos::DefaultExecutionSpace;

/// Runs `function`; Kokkos' exceptions become DeviceError.
template <class Function>
void with_device_errors(const Function& function) {
  try {
    function();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DeviceError(message("kokkos: ", error.what()));
  }
}

/// Initializes Kokkos unless it is initialized, and then also finalizes it at exit; a program that
/// initialized Kokkos finalizes it itself. Throws NoDevice if Kokkos was built for a GPU that is
/// missing, DeviceError if Kokkos was finalized.
void ensure_initialized();

/// Restores the current GPU at the end of its life.
class KeepDevice {
 public:
  KeepDevice();
  ~KeepDevice();
  KeepDevice(const KeepDevice&) = delete;
  KeepDevice& operator=(const KeepDevice&) = delete;

 private:
  int device_ = 0;
};

/// Each source file of kernels has one, by launch_nothing: Kokkos sets things up for each file when
/// it first launches something from there, which a capture does not allow.
void warm_up_losses(const DeviceSpace&);
void warm_up_assign(const DeviceSpace&);
void warm_up_max_iou_match(const DeviceSpace&);
void warm_up_task_aligned_match(const DeviceSpace&);
void warm_up_class_loss(const DeviceSpace&);
void warm_up_distribution_loss(const DeviceSpace&);
void warm_up_collate_targets(const DeviceSpace&);

/// During one call: the execution's GPU is current, and `space` stands for its stream. The first
/// call on a stream makes the instance, which allocates memory and must therefore come before any
/// capture; it is released when Kokkos is finalized.
///
/// A new instance is warmed up.
struct DeviceCall {
  explicit DeviceCall(const Execution& execution);

  KeepDevice keep;
  DeviceSpace space;
};

/// A counter on the device of the current call, zero and unused by any concurrent launch; null if
/// all are taken. Launches on one stream run in order and share one; a captured launch may be
/// replayed beside anything, so it keeps one for good. Per-thread default streams have the same
/// handle, so they cannot share one.
Counter* take_counter(const Execution& execution);

/// Throws DeviceError if the launch just made has failed.
void check_launch();

}  // namespace boxloss::kokkos
