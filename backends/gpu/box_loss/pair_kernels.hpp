// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "box_loss/reduce.hpp"
#include "kernels/box_loss/flat_groups.hpp"
#include "kernels/box_loss/image_parts.hpp"

/// The loops over pairs, for any formula, pairing and dtypes, of two kinds. Flat, for contiguous
/// boxes and pairings that do not depend on images: a thread takes neighbouring boxes. Strided, for
/// everything else but pairs by index and rotated boxes that `are_rows`: a group of lanes takes
/// part of one image's slots.
namespace boxloss::BOXLOSS_GPU {

/// The end of every forward kernel.
template <class F, class C, int kSums>
__device__ void finish_forward(const ForwardArgs<F, C>& a, const Reducer<C>& reducer,
                               const Partial<kSums>& own) {
  if (a.losses != nullptr) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *reducer.outputs.scale = C(1);
  } else if (kSums == 1 || a.wants_l1) {
    reduce_grid(reducer, own);
  } else {
    reduce_grid(reducer, LossPartial{{own.sums[0]}, own.count});
  }
}

template <class F, class P, class T, class C, class Pairing, bool kPlain>
__global__ void __launch_bounds__(kThreads, kMinBlocks<C>)
    forward_flat(const ForwardArgs<F, C> a, const FlatBoxes<P, T> boxes, const Pairing pairing,
                 const Reducer<C> reducer) {
  constexpr int kBoxes = kGroup<P, T>;
  constexpr int kStride = kThreads * kBoxes;
  constexpr int kGroups = kUnroll<kBoxes, Pairing>;
  constexpr std::int64_t kTile = kStride * kGroups;
  const std::int64_t tiles = a.slots / kTile;
  LossPartial own{};
#pragma unroll 1  // the instruction cache holds one body, not four
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    own += forward_groups<kPlain, kBoxes, kGroups>(a, boxes, pairing,
                                                   tile * kTile + threadIdx.x * kBoxes, kStride);
  }
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
#pragma unroll 1
  for (std::int64_t box = tiles * kTile + thread; box < a.slots; box += gridDim.x * kThreads) {
    own += forward_groups<kPlain, 1, 1>(a, boxes, pairing, box, 0);
  }
  finish_forward(a, reducer, own);
}

template <class F, class P, class T, class C, class Pairing, bool kPlain>
__global__ void __launch_bounds__(kThreads)
    backward_flat(const BackwardArgs<F, P, T, C> a, const FlatBoxes<P, T> boxes,
                  const Pairing pairing) {
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  backward_boxes<kPlain>(a, boxes, pairing, group);
}

/// Calls use(part, lane) for each part of an image that this group of lanes takes.
template <class F, class C, class Use>
__device__ void for_each_part(const PairArgs<F, C>& a, const Use& use) {
  const std::int64_t parts = parts_of(a);
  const std::int64_t groups = static_cast<std::int64_t>(gridDim.x) * (kThreads / kLanes);
  const int lane = threadIdx.x % kLanes;
  std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kLanes;
  for (; i < parts; i += groups) use(image_part(a, i), lane);
}

template <class F, class P, class T, class C, class Pairing>
__global__ void __launch_bounds__(kThreads, kMinBlocks<C>)
    forward_strided(const ForwardArgs<F, C> a, const StridedPair<P, T> boxes, const Pairing pairing,
                    const Reducer<C> reducer) {
  LossesPartial own{};
  for_each_part(a, [&](const ImagePart& part, int lane) {
    forward_part(a, boxes, pairing, part, lane, kLanes, own);
  });
  finish_forward(a, reducer, own);
}

template <class F, class P, class T, class C, class Pairing>
__global__ void __launch_bounds__(kThreads)
    backward_strided(const BackwardArgs<F, P, T, C> a, const StridedPair<P, T> boxes,
                     const Pairing pairing) {
  const C scale = *a.scale;
  for_each_part(a, [&](const ImagePart& part, int lane) {
    backward_part(a, boxes, pairing, scale, part, lane, kLanes);
  });
}

}  // namespace boxloss::BOXLOSS_GPU
