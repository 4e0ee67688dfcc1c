// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>

/// Runs GPU kernels on the host, so that sanitizers see every access, on wavefronts of 32 or of 64.
///
/// Blocks run one after another, in a shuffled order. In a block a wavefront, picked at random,
/// runs until all its lanes wait or have exited; then it is another's turn, or, on every other way
/// to a barrier, its own until it is there: some are far ahead then. Lanes run one by one, again in
/// a shuffled order, each until it waits: in a shuffle for the rest of its wavefront, in
/// __syncthreads for the rest of its block. So whatever needs a barrier that is not there, or some
/// order of threads or blocks, soon gives another result. A seed makes the orders repeatable.
///
/// What a GPU leaves undefined is a DeviceError here: to shuffle from a lane that has exited, waits
/// elsewhere or does not exist; to wait for threads that never come.
///
/// Shared memory is static: a block finds in it what the one before has left. One kernel at a time.
namespace boxloss::gpu_on_host {

/// To come, on wavefronts of that many lanes. Starts the orders of that seed.
void set_hardware(unsigned wavefront, unsigned seed = 1);

void run_grid(const char* name, unsigned blocks, unsigned threads,
              const std::function<void()>& kernel);

/// The rest is for kernels, and mostly CUDA's.

struct Position {
  unsigned x = 0;
};
extern Position threadIdx, blockIdx, gridDim;

void __syncthreads();

/// What a lane passes on and wants to have.
struct Exchange {
  const void* value;
  void* result;
  std::size_t bytes;
  unsigned lanes, width;
  bool is_least;
};

void exchange(const Exchange& wish);

/// HIP's __shfl_down: the value of the lane `lanes` further on in the group of `width` lanes, or
/// the own one where the group ends before.
template <class T>
T shuffle_down(T value, unsigned lanes, unsigned width) {
  static_assert(std::is_trivially_copyable_v<T>);
  T result;
  exchange({&value, &result, sizeof(T), lanes, width, false});
  return result;
}

/// CUDA's __reduce_min_sync: the least value of the group of `width` lanes.
inline unsigned least_of_lanes(unsigned value, unsigned width) {
  unsigned result;
  exchange({&value, &result, sizeof value, 0, width, true});
  return result;
}

}  // namespace boxloss::gpu_on_host

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
