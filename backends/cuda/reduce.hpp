// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "counters.hpp"
#include "lanes/pair_args.hpp"

/// The deterministic sum over all blocks within one launch: each block leaves its partial sum, and
/// the last one to arrive adds them in a fixed order.
namespace boxloss::BOXLOSS_GPU {

constexpr int kThreads = 256;

/// Threads that exchange values by shuffles, and that take an image's slots together. No more than
/// the narrowest wavefront has, so that one source is right on wavefronts of 32 and of 64.
constexpr int kLanes = 32;

/// How the blocks' sums become one.
template <class C>
struct Reducer {
  double* partials;  ///< one for each block
  Counter* counter;
  ReducedLoss<C> outputs;
};

/// A counter holds the number of blocks above, the number of counted pairs below.
constexpr int kBlockShift = 44;

/// The sum over the block, in its first thread. `lane_sums` must not be in use any more.
__device__ inline Partial block_sum(Partial value, Partial* lane_sums) {
#pragma unroll
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
    value += {shuffle_down(value.sum, lanes), shuffle_down(value.count, lanes)};
  }
  if (threadIdx.x % kLanes == 0) lane_sums[threadIdx.x / kLanes] = value;
  __syncthreads();
  Partial total{0, 0};
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < kThreads / kLanes; ++i) total += lane_sums[i];
  }
  return total;
}

/// Called by all threads of all blocks with their own part of the sum.
template <class C>
__device__ void reduce_grid(const Reducer<C>& r, const Partial& own) {
  __shared__ Partial lane_sums[2][kThreads / kLanes];
  __shared__ Counter arrivals;
  const Partial block = block_sum(own, lane_sums[0]);
  if (threadIdx.x == 0) {
    r.partials[blockIdx.x] = block.sum;
    const Counter arrival = (Counter{1} << kBlockShift) + block.count;
    arrivals = add_acquire_release(r.counter, arrival) + arrival;
  }
  __syncthreads();
  if (arrivals >> kBlockShift != gridDim.x) return;

  Partial total{0, 0};
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) {
    total.sum += static_cast<const volatile double*>(r.partials)[i];
  }
  total = block_sum(total, lane_sums[1]);
  if (threadIdx.x == 0) {
    total.count = arrivals & ((Counter{1} << kBlockShift) - 1);
    r.outputs.write(total);
    *r.counter = 0;
  }
}

}  // namespace boxloss::BOXLOSS_GPU
