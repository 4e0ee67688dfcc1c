// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <new>

#include "memory.hpp"

namespace boxloss::conformance {
namespace {

void* allocate(std::size_t bytes) {
  void* data = std::malloc(bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

constexpr DeviceMemory kMemory = {allocate, std::free, copy, copy};

}  // namespace

const DeviceMemory* cpu_memory() { return &kMemory; }

}  // namespace boxloss::conformance
