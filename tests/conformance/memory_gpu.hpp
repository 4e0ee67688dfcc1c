// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "gpu/vendor.hpp"
#include "memory.hpp"

/// The memory of CUDA's or HIP's devices, for the file of each.
namespace boxloss::conformance {
namespace {

void check(BOXLOSS_VENDOR(Error_t) error, const char* call) {
  if (error == BOXLOSS_VENDOR(Success)) return;
  throw std::runtime_error(std::string(call) + ": " + BOXLOSS_VENDOR(GetErrorString)(error));
}

void* allocate(std::size_t bytes) {
  void* data = nullptr;
  BOXLOSS_CALL(Malloc, &data, bytes);
  return data;
}

void release(void* data) { BOXLOSS_CALL(Free, data); }

void copy(void* to, const void* from, std::size_t bytes) {
  BOXLOSS_CALL(Memcpy, to, from, bytes, BOXLOSS_VENDOR(MemcpyDefault));
}

constexpr DeviceMemory kMemory = {allocate, release, copy, copy};

const DeviceMemory* gpu_memory() {
  int devices = 0;
  const bool is_there = BOXLOSS_VENDOR(GetDeviceCount)(&devices) == BOXLOSS_VENDOR(Success);
  return is_there && devices > 0 ? &kMemory : nullptr;
}

}  // namespace
}  // namespace boxloss::conformance
