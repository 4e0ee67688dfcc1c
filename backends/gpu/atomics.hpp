// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

namespace boxloss::BOXLOSS_GPU {

/// What bodies of core/kernels do to numbers that several threads change.
struct Atomics {
  using Word = unsigned long long;

  template <class E>
  static __device__ void add(E* address, E value) {
    atomicAdd(address, value);
  }
  /// Gives the value before.
  template <class E>
  static __device__ E fetch_add(E* address, E value) {
    return atomicAdd(address, value);
  }
  template <class E>
  static __device__ void max(E* address, E value) {
    atomicMax(address, value);
  }
  template <class E>
  static __device__ void min(E* address, E value) {
    atomicMin(address, value);
  }
  template <class Bits>
  static __device__ Bits compare_and_swap(Bits* address, Bits expected, Bits desired) {
    return BOXLOSS_GPU::compare_and_swap(address, expected, desired);
  }
};

}  // namespace boxloss::BOXLOSS_GPU
