// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/giou_loss.hpp>

#include "counters.hpp"
#include "gpu_runtime.hpp"
#include "math/elements.hpp"

/// The deterministic sum over all blocks within one launch: each block leaves its partial sum, and
/// the last one to arrive adds them in a fixed order.
namespace boxloss::gpu {

constexpr int kThreads = 256;

/// Where a reduced loss goes, and what it is divided by.
template <class C>
struct Reducer {
  double* partials;  ///< one for each block
  Counter* counter;
  C* loss;
  C* scale;
  Elements<Any> normalizer;  ///< null data: none
  bool divides_by_count;
};

/// A counter holds the number of blocks above, the number of counted pairs below.
constexpr int kBlockShift = 44;

/// A thread's, a block's or the whole grid's share of the result.
struct Partial {
  double sum;
  Counter count;

  __device__ void operator+=(const Partial& other) {
    sum += other.sum;
    count += other.count;
  }
};

/// The sum over the block, in its first thread. `warp_sums` must not be in use any more.
__device__ inline Partial block_sum(Partial value, Partial* warp_sums) {
#pragma unroll
  for (int lanes = kWarpSize / 2; lanes > 0; lanes /= 2) {
    value += {shuffle_down(value.sum, lanes), shuffle_down(value.count, lanes)};
  }
  if (threadIdx.x % kWarpSize == 0) warp_sums[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  Partial total{0, 0};
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < kThreads / kWarpSize; ++i) total += warp_sums[i];
  }
  return total;
}

template <class C>
__device__ void write_result(const Reducer<C>& r, const Partial& total) {
  double divisor = 1;
  if (r.normalizer.data != nullptr) {
    divisor = r.normalizer.template get<double>(0);
  } else if (r.divides_by_count) {
    divisor = total.count > 0 ? static_cast<double>(total.count) : 1;
  }
  *r.scale = static_cast<C>(1 / divisor);
  *r.loss = static_cast<C>(total.sum / divisor);
}

/// Called by all threads of all blocks with their own part of the sum.
template <class C>
__device__ void reduce_grid(const Reducer<C>& r, const Partial& own) {
  __shared__ Partial warp_sums[2][kThreads / kWarpSize];
  __shared__ Counter arrivals;
  const Partial block = block_sum(own, warp_sums[0]);
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
  total = block_sum(total, warp_sums[1]);
  if (threadIdx.x == 0) {
    total.count = arrivals & ((Counter{1} << kBlockShift) - 1);
    write_result(r, total);
    *r.counter = 0;
  }
}

}  // namespace boxloss::gpu
