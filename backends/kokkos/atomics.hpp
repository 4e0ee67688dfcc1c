// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

namespace boxloss::kokkos {

/// What bodies of core/kernels do to numbers that several threads change.
struct Atomics {
  using Word = unsigned long long;

  template <class E>
  static KOKKOS_FUNCTION void add(E* address, E value) {
    Kokkos::atomic_add(address, value);
  }
  /// Gives the value before.
  template <class E>
  static KOKKOS_FUNCTION E fetch_add(E* address, E value) {
    return Kokkos::atomic_fetch_add(address, value);
  }
  template <class E>
  static KOKKOS_FUNCTION void max(E* address, E value) {
    Kokkos::atomic_max(address, value);
  }
  template <class E>
  static KOKKOS_FUNCTION void min(E* address, E value) {
    Kokkos::atomic_min(address, value);
  }
  /// Gives the value before. On a GPU by the vendor's function: Kokkos swaps 16 bits under a lock,
  /// for which a kernel on an H200 waited without end.
  template <class Bits>
  static KOKKOS_FUNCTION Bits compare_and_swap(Bits* address, Bits expected, Bits desired) {
#if defined(__CUDA_ARCH__)
    return ::atomicCAS(address, expected, desired);
#elif defined(__HIP_DEVICE_COMPILE__)
    __hip_atomic_compare_exchange_strong(address, &expected, desired, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    return expected;
#else
    return Kokkos::atomic_compare_exchange(address, expected, desired);
#endif
  }
};

}  // namespace boxloss::kokkos
