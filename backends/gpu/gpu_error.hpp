// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/error.hpp>
#include <string>

#include "src/message.hpp"

/// Turns a GPU runtime's error into an exception, for any runtime.
namespace boxloss {

struct GpuError {
  const char* implementation;
  const char* what;  ///< the call, or the kernel, that failed
  const char* name;
  const char* words;

  std::string text() const {
    return message(implementation, ": ", what, " failed: ", words, " (", name, ")");
  }
};

[[noreturn]] inline void throw_device_error(const GpuError& error) {
  throw DeviceError(error.text());
}

[[noreturn]] inline void throw_no_device(const GpuError& error) { throw NoDevice(error.text()); }

/// `architecture` is this machine's, spelled as the CMake variable `option` takes it; `built` are
/// those of the build.
[[noreturn]] inline void throw_no_kernel(const GpuError& error, const std::string& architecture,
                                         const char* option, const char* built) {
  throw DeviceError(message(error.text(), ". This build has kernels for ", built, ", this GPU is ",
                            architecture, ": build with -D", option, "=", architecture, "."));
}

}  // namespace boxloss
