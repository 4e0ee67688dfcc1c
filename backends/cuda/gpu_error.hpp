// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/error.hpp>
#include <string>

#include "src/message.hpp"

/// What a GPU runtime's error becomes, whichever runtime it is.
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

/// `architecture` is this machine's, as the CMake variable `option` spells it; `built` are those of
/// the build.
[[noreturn]] inline void throw_no_kernel(const GpuError& error, const std::string& architecture,
                                         const char* option, const char* built) {
  throw DeviceError(message(error.text(), ". This build has kernels for ", built, ", this GPU is ",
                            architecture, ": build with -D", option, "=", architecture, "."));
}

}  // namespace boxloss
