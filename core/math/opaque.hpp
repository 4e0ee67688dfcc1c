// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "math/host_device.hpp"

/// Values that a GPU's compiler takes for ones that it knows nothing about.
namespace boxloss {

/// For a value that all threads share: a branch on it is not moved out of a loop, which would
/// double the loop's code.
BOXLOSS_HOST_DEVICE int opaque(int value) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(value));
#elif defined(__HIP_DEVICE_COMPILE__)
  asm volatile("" : "+s"(value));
#endif
  return value;
}

// The next two are for AMD's compiler alone. It moves more out of a loop than there are registers
// for: pointers that walk along each array, and the outcome of each comparison.

/// For a thread's own index, or a stride that is added to it.
BOXLOSS_HOST_DEVICE std::int64_t opaque_index(std::int64_t index) {
#if defined(__AMDGCN__)
  asm("" : "+v"(index));
#endif
  return index;
}

/// For a flag that all threads share.
BOXLOSS_HOST_DEVICE bool opaque_flag(bool flag) {
#if defined(__AMDGCN__)
  int value = flag;
  asm("" : "+s"(value));
  flag = value != 0;
#endif
  return flag;
}

}  // namespace boxloss
