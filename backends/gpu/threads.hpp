// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

namespace boxloss::BOXLOSS_GPU {

constexpr int kThreads = 256;

/// The largest number of forward's blocks on a processor. Given it, CUDA's compiler uses all
/// registers that are left, and all loads are in flight together; otherwise it saves registers and
/// loads one by one. Double needs more.
template <class C>
constexpr int kMinBlocks = sizeof(C) == sizeof(float) ? kFloatBlocks : 1;

/// The size of a group of threads that exchange values by shuffles and take an image's slots
/// together. It is the narrowest wavefront's, so that one source is correct on wavefronts of 32 and
/// of 64.
constexpr int kLanes = 32;

/// A block of kThreads threads, as the team of core/kernels/team.hpp.
struct Block {
  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ constexpr int threads() { return kThreads; }
  static __device__ int number() { return static_cast<int>(blockIdx.x); }
  static __device__ int count() { return static_cast<int>(gridDim.x); }
  static __device__ void sync() { __syncthreads(); }
};

}  // namespace boxloss::BOXLOSS_GPU
