// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>
#include <boxloss/error.hpp>
#include <boxloss/execution.hpp>
#include <exception>

#include "pair_workspace.hpp"
#include "src/message.hpp"

/// Kokkos' life in a process that may or may not know of it, and the caller's streams as its
/// execution-space instances.
namespace boxloss::kokkos {

using HostSpace = Kokkos::DefaultHostExecutionSpace;
using DeviceSpace = Kokkos::DefaultExecutionSpace;

/// Runs `function`; what Kokkos throws leaves it as DeviceError.
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

/// Initialises Kokkos when nobody has. What is initialised here is finalised at exit; what the
/// program itself initialised is the program's to finalise. Throws NoDevice where Kokkos was built
/// for a GPU that is missing, DeviceError when Kokkos was finalised.
void ensure_initialized();

/// Makes the GPU that is current so again at the end of its life.
class KeepDevice {
 public:
  KeepDevice();
  ~KeepDevice();
  KeepDevice(const KeepDevice&) = delete;
  KeepDevice& operator=(const KeepDevice&) = delete;

 private:
  int device_ = 0;
};

/// For the length of one call: the execution's GPU is current, and `space` stands for its stream.
/// That instance is made by the first call on a stream, which allocates and must therefore come
/// before any capture; it is released when Kokkos is finalised.
///
/// `warm_up` is called with a new instance; it must launch something from the source file of the
/// kernels, since Kokkos also sets things up for each of those.
struct DeviceCall {
  DeviceCall(const Execution& execution, void (*warm_up)(const DeviceSpace&));

  KeepDevice keep;
  DeviceSpace space;
};

/// A counter on the device of the call under way, which is zero and which no other launch can use
/// at the same time; or null when all are taken. Launches on one stream follow each other and share
/// one; a captured launch may be replayed beside anything, so it keeps one for good. Each thread's
/// own stream has the same handle, so that none can be shared there.
Counter* take_counter(const Execution& execution);

/// Throws DeviceError if the launch just made has failed.
void check_launch();

}  // namespace boxloss::kokkos
