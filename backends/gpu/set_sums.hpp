// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

#include <algorithm>
#include <boxloss/execution.hpp>

#include "box_loss/workspace.hpp"
#include "threads.hpp"

/// Sums of sets over all blocks in one launch: the last block adds those of all blocks. A sum is a
/// struct of doubles.
namespace boxloss::BOXLOSS_GPU {

/// Where the blocks' sums go: to the caller's workspace, then to `outputs`, by write(sum, set).
template <class Sum, class Outputs>
struct SetReducer {
  Sum* sums;
  Counter* counter;
  Outputs outputs;
  std::int64_t sets;
  unsigned blocks_of_set;

  unsigned blocks() const {
    return static_cast<unsigned>(std::min<std::int64_t>(sets * blocks_of_set, 0x7fffffff));
  }
};

/// The block's part of a set: one of blocks_of_set.
struct SetPart {
  std::int64_t set;
  unsigned part;
};

__device__ inline SetPart set_part(unsigned blocks_of_set) {
  const unsigned set = blockIdx.x / blocks_of_set;
  return {set, blockIdx.x - set * blocks_of_set};
}

template <class Sum>
constexpr int kNumbers = sizeof(Sum) / sizeof(double);

template <class Sum>
__device__ void add_numbers(Sum& to, const volatile Sum& from) {
  auto* const own = reinterpret_cast<double*>(&to);
  const auto* const other = reinterpret_cast<const volatile double*>(&from);
#pragma unroll
  for (int i = 0; i < kNumbers<Sum>; ++i) own[i] += other[i];
}

template <class Sum>
__device__ void add_lanes(Sum& sum) {
  auto* const numbers = reinterpret_cast<double*>(&sum);
#pragma unroll
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
#pragma unroll
    for (int i = 0; i < kNumbers<Sum>; ++i) numbers[i] += shuffle_down(numbers[i], lanes);
  }
}

/// Called by all threads of all blocks of kGroups * kLanes threads, with their own part of a set's
/// sum. A block that has the set to itself is done at once.
template <int kGroups, class Sum, class Outputs>
__device__ void reduce(const SetReducer<Sum, Outputs>& r, Sum own) {
  __shared__ Sum of_groups[kGroups];
  __shared__ Counter arrivals;
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  add_lanes(own);
  if (lane == 0) of_groups[group] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 1; i < kGroups; ++i) add_numbers(own, of_groups[i]);
    if (r.blocks_of_set == 1) {
      r.outputs.write(own, blockIdx.x);
      arrivals = 0;  // done
    } else {
      r.sums[blockIdx.x] = own;
      arrivals = add_acquire_release(r.counter, 1) + 1;
    }
  }
  __syncthreads();
  if (arrivals != gridDim.x) return;
#pragma unroll 1
  for (std::int64_t set = group; set < r.sets; set += kGroups) {
    const Sum* const sums = r.sums + set * r.blocks_of_set;
    Sum total = {};
#pragma unroll 4
    for (unsigned i = lane; i < r.blocks_of_set; i += kLanes) add_numbers(total, sums[i]);
    add_lanes(total);
    if (lane == 0) r.outputs.write(total, set);
  }
  if (threadIdx.x == 0) *r.counter = 0;
}

/// Sums of at most kMaxBlocks blocks, or one of each set, and a counter for a launch that finds no
/// other.
template <class Sum>
std::size_t sums_bytes(std::int64_t sets) {
  return static_cast<std::size_t>(std::max(sets, kMaxBlocks)) * sizeof(Sum) + sizeof(Counter);
}

/// Of `wanted` blocks for each set, in all as many as fit the GPU at once.
template <class Sum, class Outputs>
SetReducer<Sum, Outputs> make_reducer(const Outputs& outputs, std::int64_t sets,
                                      std::int64_t wanted, int blocks_of_processor,
                                      const Execution& execution) {
  const Stream stream = static_cast<Stream>(execution.stream);
  const std::int64_t most = std::min<std::int64_t>(
      kMaxBlocks, blocks_of_processor * std::int64_t{processor_count(execution.device_index)});
  auto* const sums = static_cast<Sum*>(execution.workspace);
  const auto blocks_of_set =
      std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(most / sets, 1));
  SetReducer<Sum, Outputs> reducer = {sums, nullptr, outputs, sets,
                                      static_cast<unsigned>(blocks_of_set)};
  if (blocks_of_set == 1) return reducer;  // each block has a set to itself
  reducer.counter = take_counter(execution.device_index, stream);
  if (reducer.counter == nullptr) {
    reducer.counter = reinterpret_cast<Counter*>(sums + std::max(sets, kMaxBlocks));
    zero_async(reducer.counter, sizeof(Counter), stream);
  }
  return reducer;
}

}  // namespace boxloss::BOXLOSS_GPU
