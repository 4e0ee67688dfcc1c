// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <hip/hip_runtime.h>

#include <stdexcept>
#include <string>

#include "memory.hpp"

namespace boxloss::conformance {
namespace {

void check(hipError_t error) {
  if (error != hipSuccess)
    throw std::runtime_error(std::string("HIP: ") + hipGetErrorString(error));
}

void* allocate(std::size_t bytes) {
  void* data = nullptr;
  check(hipMalloc(&data, bytes));
  return data;
}

void release(void* data) { check(hipFree(data)); }

void copy(void* to, const void* from, std::size_t bytes) {
  check(hipMemcpy(to, from, bytes, hipMemcpyDefault));
}

constexpr DeviceMemory kMemory = {allocate, release, copy, copy};

}  // namespace

const DeviceMemory* hip_memory() {
  int devices = 0;
  return hipGetDeviceCount(&devices) == hipSuccess && devices > 0 ? &kMemory : nullptr;
}

}  // namespace boxloss::conformance
