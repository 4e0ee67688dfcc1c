// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "host_device.hpp"

/// Hides values from a GPU's optimizer, which then cannot move computations with them out of loops,
/// or into them.
namespace boxloss {

/// For gfx12 clang 21 may have a uniform value in a VGPR, and refuses it where an SGPR must be.
BOXLOSS_HOST_DEVICE int in_sgpr(int value) {
#if defined(__GFX12__) && defined(__HIP_DEVICE_COMPILE__)
  value = __builtin_amdgcn_readfirstlane(value);
#endif
  return value;
}

/// For a uniform value (the same in all threads): keeps a branch on it inside the loop. Moved out,
/// it would double the loop's code.
BOXLOSS_HOST_DEVICE int optimization_barrier(int value) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(value));
#elif defined(__HIP_DEVICE_COMPILE__)
  value = in_sgpr(value);
  asm volatile("" : "+s"(value));
#endif
  return value;
}

/// For a pointer, which must be to global memory, that a loop adds to. Without it CUDA's compiler
/// adds up the indices in the loop, and reads the pointer from the kernel's arguments there each
/// time.
template <class T>
BOXLOSS_HOST_DEVICE const T* pointer_barrier(const T* pointer) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+l"(pointer));
  __builtin_assume(__isGlobal(pointer));
#endif
  return pointer;
}

// The next two affect AMD's compiler only. It moves more out of a loop than there are registers
// for: a pointer into each array, and the result of each comparison. The first word alone is
// defined while it compiles for the host, too.

/// For a thread's index, or a stride that is added to it.
BOXLOSS_HOST_DEVICE std::int64_t index_barrier(std::int64_t index) {
#if defined(__AMDGCN__) && defined(__HIP_DEVICE_COMPILE__)
  asm("" : "+v"(index));
#endif
  return index;
}

/// For a uniform flag.
BOXLOSS_HOST_DEVICE bool flag_barrier(bool flag) {
#if defined(__AMDGCN__) && defined(__HIP_DEVICE_COMPILE__)
  int value = in_sgpr(flag);
  asm("" : "+s"(value));
  flag = value != 0;
#endif
  return flag;
}

}  // namespace boxloss
