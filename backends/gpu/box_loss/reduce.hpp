// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "box_loss/workspace.hpp"
#include "kernels/box_loss/pair_args.hpp"
#include "threads.hpp"

/// The deterministic sum over all blocks within one launch: each block writes its partial sum, and
/// the last one to finish adds them in a fixed order.
namespace boxloss::BOXLOSS_GPU {

/// Adds the blocks' sums up to one.
template <class C>
struct Reducer {
  double* partials;  ///< kMaxBlocks for each of: the loss, l1, and with sets the counts
  Counter* counter;
  ReducedLoss<C> outputs;
};

/// A counter has the number of blocks in its high bits, the number of valid pairs in its low bits.
constexpr int kBlockShift = 44;

/// The sum over kLanes lanes, in the first of them.
template <int kSums>
__device__ Partial<kSums> lanes_sum(Partial<kSums> value) {
#pragma unroll
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
    Partial<kSums> other;
#pragma unroll
    for (int i = 0; i < kSums; ++i) other.sums[i] = shuffle_down(value.sums[i], lanes);
    other.count = shuffle_down(value.count, lanes);
    value += other;
  }
  return value;
}

/// The sum over the block, in its first thread. `lane_sums` must not be in use any more.
template <int kSums>
__device__ Partial<kSums> block_sum(const Partial<kSums>& value, Partial<kSums>* lane_sums) {
  const Partial<kSums> sum = lanes_sum(value);
  if (threadIdx.x % kLanes == 0) lane_sums[threadIdx.x / kLanes] = sum;
  __syncthreads();
  Partial<kSums> total{};
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < kThreads / kLanes; ++i) total += lane_sums[i];
  }
  return total;
}

template <class C, int kSums>
__device__ void leave_sums(const Reducer<C>& r, const Partial<kSums>& block) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) r.partials[i * kMaxBlocks + blockIdx.x] = block.sums[i];
}

template <class C, int kSums>
__device__ void add_left_sums(const Reducer<C>& r, unsigned block, Partial<kSums>& total) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) {
    total.sums[i] += static_cast<const volatile double*>(r.partials)[i * kMaxBlocks + block];
  }
}

/// Called by all threads of all blocks with their own part of the sum.
template <class C, int kSums>
__device__ void reduce_grid(const Reducer<C>& r, const Partial<kSums>& own) {
  __shared__ Partial<kSums> lane_sums[2][kThreads / kLanes];
  __shared__ Counter arrivals;
  const Partial<kSums> block = block_sum(own, lane_sums[0]);
  if (threadIdx.x == 0) {
    leave_sums(r, block);
    const Counter arrival = (Counter{1} << kBlockShift) + block.count;
    arrivals = add_acquire_release(r.counter, arrival) + arrival;
  }
  __syncthreads();
  if (arrivals >> kBlockShift != gridDim.x) return;

  Partial<kSums> total{};
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) add_left_sums(r, i, total);
  total = block_sum(total, lane_sums[1]);
  if (threadIdx.x == 0) {
    total.count = arrivals & ((Counter{1} << kBlockShift) - 1);
    r.outputs.write(total);
    *r.counter = 0;
  }
}

/// The same for one of several sets. A block that has the set to itself is done at once; otherwise
/// the last block of all adds the sums of all sets.
template <class C, int kSums>
__device__ void reduce_set(const Reducer<C>& r, const Partial<kSums>& own, std::int64_t set,
                           std::int64_t sets, unsigned blocks_of_set) {
  __shared__ Partial<kSums> lane_sums[kThreads / kLanes];
  __shared__ Counter arrivals;
  const Partial<kSums> block = block_sum(own, lane_sums);
  if (blocks_of_set == 1) {
    if (threadIdx.x == 0) r.outputs.write(block, set);
    return;
  }
  if (threadIdx.x == 0) {
    leave_sums(r, block);
    r.partials[kSums * kMaxBlocks + blockIdx.x] = static_cast<double>(block.count);
    arrivals = add_acquire_release(r.counter, 1) + 1;
  }
  __syncthreads();
  if (arrivals != gridDim.x) return;

  for (unsigned s = threadIdx.x / kLanes; s < sets; s += kThreads / kLanes) {
    Partial<kSums> total{};
    for (unsigned i = threadIdx.x % kLanes; i < blocks_of_set; i += kLanes) {
      const unsigned of_set = s * blocks_of_set + i;
      add_left_sums(r, of_set, total);
      total.count += static_cast<unsigned long long>(
          static_cast<const volatile double*>(r.partials)[kSums * kMaxBlocks + of_set]);
    }
    total = lanes_sum(total);
    if (threadIdx.x % kLanes == 0) r.outputs.write(total, s);
  }
  if (threadIdx.x == 0) *r.counter = 0;
}

}  // namespace boxloss::BOXLOSS_GPU
