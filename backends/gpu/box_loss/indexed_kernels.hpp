// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "atomics.hpp"
#include "box_loss/pair_kernels.hpp"
#include "kernels/box_loss/atomic_boxes.hpp"
#include "kernels/box_loss/indexed_pairs.hpp"

/// The loops over pairs by index: a thread takes a pair.
namespace boxloss::BOXLOSS_GPU {

/// Each set has blocks of its own, depending on its number of pairs.
template <class F, class P, class T, class C>
__global__ void __launch_bounds__(kThreads, kMinBlocks<C>)
    forward_indexed(const ForwardArgs<F, C> a, const IndexedPairs<P, T> pairs,
                    const Reducer<C> reducer, const unsigned blocks_of_set) {
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x % blocks_of_set) * kThreads + threadIdx.x;
  const std::int64_t stride = static_cast<std::int64_t>(blocks_of_set) * kThreads;
  const std::int64_t set = blockIdx.x / blocks_of_set;
  LossesPartial own{};
#pragma unroll 1
  for (std::int64_t k = first; k < pairs.of_set; k += stride) {
    own += forward_pair(a, pairs, set * pairs.of_set + k);
  }
  if (a.losses != nullptr) {
    if (first == 0) reducer.outputs.scale[set] = C(1);
  } else if (pairs.sets == 1 && blocks_of_set > 1) {  // all threads add, not one group of lanes
    reduce_grid(reducer, own);
  } else {
    reduce_set(reducer, own, set, pairs.sets, blocks_of_set);
  }
}

template <class F, class P, class T, class C>
__global__ void __launch_bounds__(kThreads)
    backward_indexed(const BackwardArgs<F, P, T, C> a, const IndexedPairs<P, T> pairs) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (k < pairs.sets * pairs.of_set) backward_pair(a, pairs, k, AtomicAdd<Atomics>());
}

}  // namespace boxloss::BOXLOSS_GPU
