// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "host_device.hpp"

/// Hides values from a GPU's optimizer, which then cannot move computations with them out of loops.
namespace boxloss {

/// For a uniform value (the same in all threads): keeps a branch on it inside the loop. Moved out,
/// it would double the loop's code.
BOXLOSS_HOST_DEVICE int optimization_barrier(int value) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(value));
#elif defined(__HIP_DEVICE_COMPILE__)
  asm volatile("" : "+s"(value));
#endif
  return value;
}

// The next two affect AMD's compiler only. It moves more out of a loop than there are registers
// for: a pointer into each array, and the result of each comparison.

/// For a thread's index, or a stride that is added to it.
BOXLOSS_HOST_DEVICE std::int64_t index_barrier(std::int64_t index) {
#if defined(__AMDGCN__)
  asm("" : "+v"(index));
#endif
  return index;
}

/// For a uniform flag.
BOXLOSS_HOST_DEVICE bool flag_barrier(bool flag) {
#if defined(__AMDGCN__)
  int value = flag;
  asm("" : "+s"(value));
  flag = value != 0;
#endif
  return flag;
}

}  // namespace boxloss
