// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xla/ffi/api/ffi.h>

#include <algorithm>
#include <array>
#include <boxloss/execution.hpp>
#include <boxloss/registry.hpp>
#include <cstddef>
#include <iterator>
#include <vector>

#include "arguments.hpp"

/// Adapts XLA's calls, streams and errors to core's, and what ctypes asks while JAX traces.
namespace boxloss::jax_binding {

namespace ffi = xla::ffi;

/// A call that XLA makes.
struct Call {
  struct Result {
    std::string_view name;
    void* data;
  };

  const Arguments& arguments;
  const Implementation& implementation;
  std::vector<Result> results;
  /// Its workspace is the result of that name.
  Execution execution;

  /// Null if it is not wanted.
  void* result(std::string_view name) const;
};

using Run = void (*)(const Call& call);

ffi::Error run_on(std::initializer_list<Device> devices, const Execution& execution, Run run,
                  const ffi::RemainingArgs& operands, const ffi::RemainingRets& results,
                  const ffi::Dictionary& attributes);

template <Run run>
ffi::Error run_on_cpu(ffi::RemainingArgs operands, ffi::RemainingRets results,
                      ffi::Dictionary attributes) {
  return run_on({Device::kCpu}, {}, run, operands, results, attributes);
}

/// An NVIDIA GPU or, in ROCm builds of jaxlib, an AMD one.
template <Run run>
ffi::Error run_on_gpu(void* stream, std::int32_t device_index, ffi::RemainingArgs operands,
                      ffi::RemainingRets results, ffi::Dictionary attributes) {
  Execution execution;
  execution.device_index = device_index;
  execution.stream = stream;
  return run_on({Device::kCuda, Device::kHip}, execution, run, operands, results, attributes);
}

/// Exports a function as the handlers boxloss_jax_NAME_cpu and _gpu, which jax.ffi registers.
#define BOXLOSS_JAX_HANDLERS(name, run)                                                          \
  _Pragma("GCC visibility push(default)") XLA_FFI_DEFINE_HANDLER_SYMBOL(                         \
      boxloss_jax_##name##_cpu, boxloss::jax_binding::run_on_cpu<run>,                           \
      xla::ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs());                            \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(boxloss_jax_##name##_gpu, boxloss::jax_binding::run_on_gpu<run>, \
                                xla::ffi::Ffi::Bind()                                            \
                                    .Ctx<xla::ffi::PlatformStream<void*>>()                      \
                                    .Ctx<xla::ffi::DeviceOrdinal>()                              \
                                    .RemainingArgs()                                             \
                                    .RemainingRets()                                             \
                                    .Attrs(),                                                    \
                                {xla::ffi::Traits::kCmdBufferCompatible});                       \
  _Pragma("GCC visibility pop") static_assert(true)

/// What an operation writes, as ctypes reads it.
struct Results {
  struct Array {
    const char *name, *dtype;
    std::int64_t shape[8], dimensions;
  };
  Array arrays[4];
  std::int64_t count;

  template <std::size_t n>
  void set(const std::array<const char*, n>& names,
           const std::array<binding::Output<std::int64_t>, n>& outputs) {
    static_assert(n <= std::size(decltype(arrays){}));
    for (std::size_t i = 0; i < n; ++i) set(i, names[i], outputs[i]);
    count = n;
  }

 private:
  void set(std::size_t i, const char* name, const binding::Output<std::int64_t>& output);
};

/// A call that JAX traces, as ctypes gives it.
struct Traced {
  struct Array {
    const char *name, *dtype;
    const std::int64_t* shape;
    std::int64_t dimensions;
  };
  /// A word or, if that is null, a number or flag. One of several numbers has its own row.
  struct Option {
    const char *name, *word;
    double number;
  };

  const Array* arrays;
  std::int64_t array_count;
  const Option* options;
  std::int64_t option_count;
  /// Results: the bytes of workspace that any implementation needs, and the kind of an error.
  std::int64_t workspace_bytes;
  enum Kind : std::int64_t { kValueError, kTypeError, kRuntimeError } error;
  Results results;
};

/// Checks a call's arguments, sets its results, and gives the bytes of workspace on an
/// implementation.
using Trace = std::size_t (*)(const Arguments& arguments, const Implementation& implementation,
                              Results& results);

/// Asks every implementation, since it is not known which one will run. Null, or what is wrong,
/// until this thread's next call.
const char* trace_call(Traced* traced, Trace trace);

/// Exports boxloss_jax_NAME_check, which ctypes calls with a Traced.
#define BOXLOSS_JAX_TRACE(name, trace)                                                      \
  extern "C" __attribute__((visibility("default"))) const char* boxloss_jax_##name##_check( \
      boxloss::jax_binding::Traced* traced) {                                               \
    return boxloss::jax_binding::trace_call(traced, trace);                                 \
  }                                                                                         \
  static_assert(true)

}  // namespace boxloss::jax_binding
