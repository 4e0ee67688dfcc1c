// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <algorithm>

#include "atomics.hpp"
#include "dispatch/max_iou_match.hpp"
#include "kernels/max_iou_match_steps.hpp"
#include "math/ceil_div.hpp"
#include "offsets.hpp"
#include "operations.hpp"
#include "threads.hpp"

/// core/kernels/max_iou_match_steps.hpp in blocks of neighbouring anchors: a block has its image's
/// boxes in shared memory, and skips those that do not reach the bounds of its anchors.
namespace boxloss::BOXLOSS_GPU {

/// The bounds of the block's boxes, for all its threads.
template <class C>
__device__ Box<C> bounds_of_block(Box<C> own) {
  __shared__ Box<C> of_groups[kThreads / kLanes];
#pragma unroll
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
    own.x1 = smaller(own.x1, shuffle_down(own.x1, lanes));
    own.y1 = smaller(own.y1, shuffle_down(own.y1, lanes));
    own.x2 = larger(own.x2, shuffle_down(own.x2, lanes));
    own.y2 = larger(own.y2, shuffle_down(own.y2, lanes));
  }
  if (threadIdx.x % kLanes == 0) of_groups[threadIdx.x / kLanes] = own;
  __syncthreads();
  Box<C> all = of_groups[0];
#pragma unroll
  for (int i = 1; i < kThreads / kLanes; ++i) {
    all.x1 = smaller(all.x1, of_groups[i].x1);
    all.y1 = smaller(all.y1, of_groups[i].y1);
    all.x2 = larger(all.x2, of_groups[i].x2);
    all.y2 = larger(all.y2, of_groups[i].y2);
  }
  return all;
}

/// Boxes that a block has in shared memory.
template <class B>
struct StagedBoxes {
  MatchBox<B> boxes[kThreads];
  bool can_overlap[kThreads];
};

/// A block's anchors, of one image.
template <class B>
struct AnchorBlock {
  using C = typename B::Value;

  std::int64_t image;
  int anchor;       ///< the thread's; beyond the image's, the last
  bool is_in;       ///< it is not beyond
  MatchBox<B> box;  ///< of the anchor
  Box<C> bounds;    ///< of all the block's
  OwnBoxes own;
};

/// Called by all threads of a block, as those that follow.
template <class B, class C>
__device__ AnchorBlock<B> anchor_block(const MaxIouArgs<C>& a, std::int64_t i, bool are_right) {
  const std::int64_t blocks_of_image = ceil_div(a.anchor_count, kThreads);
  AnchorBlock<B> block;
  block.image = i / blocks_of_image;
  const std::int64_t anchor = (i - block.image * blocks_of_image) * kThreads + threadIdx.x;
  block.is_in = anchor < a.anchor_count;
  block.anchor = static_cast<int>(block.is_in ? anchor : a.anchor_count - 1);
  block.box = match_box_at<B>(a.anchors, a.angle_unit, block.image, block.anchor);
  block.bounds = bounds_of_block(bounds_of(block.box));
  block.own = own_boxes(a, block.image, are_right);
  return block;
}

/// Stages the boxes from `first` on; gives how many.
template <class B, class C>
__device__ int stage(const MaxIouArgs<C>& a, const AnchorBlock<B>& block, std::int64_t first,
                     StagedBoxes<B>& staged) {
  const std::int64_t left = block.own.end - first;
  const int count = left < kThreads ? static_cast<int>(left) : kThreads;
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) {
    const MatchBox<B> box = match_box_at<B>(a.target, a.angle_unit, 0, first + i);
    staged.boxes[i] = box;
    staged.can_overlap[i] = can_overlap(extent_of(box), block.bounds);
  }
  return count;
}

template <class B, class C>
__global__ void __launch_bounds__(kThreads)
    find_best_of_boxes(const MaxIouArgs<C> a, const BestOfBoxes<C> best) {
  __shared__ StagedBoxes<B> staged;
  __shared__ Bits<C> of_block[kThreads];
  const bool are_right = block_are_in_order(a.offsets, a.images, a.boxes);
  const std::int64_t blocks = a.images * ceil_div(a.anchor_count, kThreads);
#pragma unroll 1
  for (std::int64_t i = blockIdx.x; i < blocks; i += gridDim.x) {
    const AnchorBlock<B> block = anchor_block<B>(a, i, are_right);
#pragma unroll 1
    for (std::int64_t first = block.own.begin; first < block.own.end; first += kThreads) {
      of_block[threadIdx.x] = 0;
      const int count = stage(a, block, first, staged);
      __syncthreads();
#pragma unroll 1
      for (int k = 0; k < count; ++k) {
        if (!staged.can_overlap[k]) continue;
        const Bits<C> bits = bits_of(iou_of(staged.boxes[k], block.box));
        if (bits > of_block[k]) atomicMax(&of_block[k], bits);
      }
      __syncthreads();
      if (of_block[threadIdx.x] > 0) {
        atomicMax(&best.ious[first + threadIdx.x], of_block[threadIdx.x]);
      }
      __syncthreads();
    }
    __syncthreads();
  }
}

template <class B, class C>
__global__ void __launch_bounds__(kThreads)
    match_anchors(const MaxIouArgs<C> a, const BestOfBoxes<C> best) {
  __shared__ StagedBoxes<B> staged;
  __shared__ C low_quality[kThreads];
  const bool are_right = block_are_in_order(a.offsets, a.images, a.boxes);
  const bool has_low_quality = a.low_quality != LowQuality::kNone;
  const std::int64_t blocks = a.images * ceil_div(a.anchor_count, kThreads);
#pragma unroll 1
  for (std::int64_t i = blockIdx.x; i < blocks; i += gridDim.x) {
    const AnchorBlock<B> block = anchor_block<B>(a, i, are_right);
    FoundBoxes<C> found = {C(0), block.own.begin, kNoBox};
#pragma unroll 1
    for (std::int64_t first = block.own.begin; first < block.own.end; first += kThreads) {
      const int count = stage(a, block, first, staged);
      if (static_cast<int>(threadIdx.x) < count) {
        low_quality[threadIdx.x] = low_quality_of(a, best, has_low_quality, first + threadIdx.x);
      }
      __syncthreads();
#pragma unroll 1
      for (int k = 0; k < count; ++k) {
        compare<Atomics>(a, best, block.box, block.anchor, staged.boxes[k], first + k,
                         staged.can_overlap[k], low_quality[k], found);
      }
      __syncthreads();
    }
    if (block.is_in) write_found(a, block.image, block.anchor, block.own, found);
    __syncthreads();
  }
}

template <class C>
__global__ void __launch_bounds__(kThreads)
    force(const MaxIouArgs<C> a, const BestOfBoxes<C> best) {
  const bool are_right = block_are_in_order(a.offsets, a.images, a.boxes);
#pragma unroll 1
  for (std::int64_t image = blockIdx.x; image < a.images; image += gridDim.x) {
    force_boxes(a, best, image, own_boxes(a, image, are_right), Block::thread(), Block::threads());
  }
}

std::size_t Operations::workspace_bytes(const MaxIouProblem& p) {
  if (p.low_quality == LowQuality::kNone) return 0;
  return static_cast<std::size_t>(p.target.slots) * (size_of(compute_dtype(p)) + sizeof(unsigned));
}

void Operations::max_iou_match(const MaxIouProblem& p, const MaxIouOutputs& outputs,
                               const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  const Stream stream = static_cast<Stream>(execution.stream);
  const auto fill = [&](void* data, int byte, std::size_t bytes) {
    fill_async(data, byte, bytes, stream);
  };
  dispatch(p, outputs, fill, [&](auto box) {
    using B = decltype(box);
    using C = typename B::Value;
    const MaxIouArgs<C> args = max_iou_args<C>(p, outputs);
    constexpr std::int64_t kMost = 0x7fffffff;
    const std::int64_t all = args.images * ceil_div(args.anchor_count, kThreads);
    const auto blocks = static_cast<unsigned>(std::min(all, kMost));
    BestOfBoxes<C> best = {};
    if (p.low_quality != LowQuality::kNone) {
      best = best_of_boxes<C>(execution.workspace, args.boxes, fill);
      launch(find_best_of_boxes<B, C>, "max_iou_match", blocks, kThreads, stream, args, best);
    }
    launch(match_anchors<B, C>, "max_iou_match", blocks, kThreads, stream, args, best);
    if (p.low_quality == LowQuality::kForce) {
      const auto images = static_cast<unsigned>(std::min(args.images, kMost));
      launch(force<C>, "max_iou_match", images, kThreads, stream, args, best);
    }
  });
}

}  // namespace boxloss::BOXLOSS_GPU
