// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <algorithm>

#include "dispatch/max_iou_match.hpp"
#include "math/bits.hpp"
#include "math/ceil_div.hpp"
#include "offsets.hpp"
#include "operations.hpp"
#include "threads.hpp"

/// Max-IoU matching: a thread for each anchor, whose block has its image's boxes in shared memory
/// and skips those that do not reach the bounds of its anchors. Low quality takes two passes, of
/// the same arithmetic: the first finds each box's best IoU, by atomic maxima of integers, which
/// are the same every time; the second compares with it.
namespace boxloss::BOXLOSS_GPU {

/// An IoU as an unsigned integer, in the same order: 0 is the lowest, NaN the highest.
template <class C>
struct BitsOf;
template <>
struct BitsOf<float> {
  using Type = unsigned;
};
template <>
struct BitsOf<double> {
  using Type = unsigned long long;
};
template <class C>
using Bits = typename BitsOf<C>::Type;

template <class C>
__device__ Bits<C> bits_of(C iou) {
  if (iou > C(0)) return bit_cast<Bits<C>>(iou);
  return iou == iou ? Bits<C>(0) : ~Bits<C>(0);
}

/// What low quality needs of each box: its best IoU and, to force it, the first anchor that has it.
template <class C>
struct BestOfBoxes {
  Bits<C>* ious;
  unsigned* anchors;

  __device__ C iou(std::int64_t box) const { return bit_cast<C>(ious[box]); }
  /// If the best IoU is 0, every anchor has it, so the first one is anchor 0.
  __device__ unsigned anchor(std::int64_t box) const { return ious[box] == 0 ? 0 : anchors[box]; }
};

/// The boxes of an image, if offsets are right.
struct OwnBoxes {
  std::int64_t begin, end;
};

template <class C>
__device__ OwnBoxes own_boxes(const MaxIouArgs<C>& a, std::int64_t image, bool are_right) {
  if (!are_right) return {0, 0};
  return {a.offsets[image], a.offsets[image + 1]};
}

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
  block.bounds = bounds_of_block(has_bounds(block.box) ? extent_of(block.box) : everywhere<C>());
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
  __shared__ C best_of[kThreads];  // NaN where low quality does not apply
  const bool are_right = block_are_in_order(a.offsets, a.images, a.boxes);
  const bool has_low_quality = a.low_quality != LowQuality::kNone;
  const std::int64_t blocks = a.images * ceil_div(a.anchor_count, kThreads);
#pragma unroll 1
  for (std::int64_t i = blockIdx.x; i < blocks; i += gridDim.x) {
    const AnchorBlock<B> block = anchor_block<B>(a, i, are_right);
    C own_best = C(0);
    std::int64_t row = block.own.begin, mark = kNoBox;
#pragma unroll 1
    for (std::int64_t first = block.own.begin; first < block.own.end; first += kThreads) {
      const int count = stage(a, block, first, staged);
      if (static_cast<int>(threadIdx.x) < count) {
        C value = kNotANumber<C>;
        if (has_low_quality && takes_low_quality(a, best.iou(first + threadIdx.x))) {
          value = best.iou(first + threadIdx.x);
        }
        best_of[threadIdx.x] = value;
      }
      __syncthreads();
#pragma unroll 1
      for (int k = 0; k < count; ++k) {
        if (best_of[k] == C(0)) mark = first + k;  // then all anchors have the box's best IoU
        if (!staged.can_overlap[k]) continue;
        const C iou = iou_of(staged.boxes[k], block.box);
        if (is_better(iou, own_best)) {
          own_best = iou;
          row = first + k;
        }
        if (iou == best_of[k]) {
          mark = first + k;
          if (a.low_quality == LowQuality::kForce) {
            atomicMin(&best.anchors[first + k], static_cast<unsigned>(block.anchor));
          }
        }
      }
      __syncthreads();
    }
    std::int64_t match = kNoBox;
    if (block.own.begin < block.own.end) match = match_of(a, own_best, row);
    if (mark != kNoBox && a.low_quality == LowQuality::kArgmax) match = row;
    if (mark != kNoBox && a.low_quality == LowQuality::kOverwrite) match = mark;
    if (block.is_in) write_match(a, block.image, block.anchor, match, own_best);
    __syncthreads();
  }
}

/// Gives each box its anchor, unless a later box gets the same one.
template <class C>
__global__ void __launch_bounds__(kThreads)
    force_boxes(const MaxIouArgs<C> a, const BestOfBoxes<C> best) {
  const bool are_right = block_are_in_order(a.offsets, a.images, a.boxes);
#pragma unroll 1
  for (std::int64_t image = blockIdx.x; image < a.images; image += gridDim.x) {
    const OwnBoxes own = own_boxes(a, image, are_right);
#pragma unroll 1
    for (std::int64_t t = own.begin + threadIdx.x; t < own.end; t += kThreads) {
      if (!takes_low_quality(a, best.iou(t))) continue;
      const unsigned anchor = best.anchor(t);
      bool is_last = true;
#pragma unroll 1
      for (std::int64_t u = t + 1; u < own.end && is_last; ++u) {
        is_last = best.anchor(u) != anchor || !takes_low_quality(a, best.iou(u));
      }
      if (is_last) a.target_index.set(image * a.anchor_count + anchor, t);
    }
  }
}

std::size_t workspace_bytes(const MaxIouProblem& p) {
  if (p.low_quality == LowQuality::kNone) return 0;
  return static_cast<std::size_t>(p.target.slots) * (size_of(compute_dtype(p)) + sizeof(unsigned));
}

void max_iou_match(const MaxIouProblem& p, const MaxIouOutputs& outputs,
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
      const auto boxes = static_cast<std::size_t>(args.boxes);
      best.ious = static_cast<Bits<C>*>(execution.workspace);
      best.anchors = reinterpret_cast<unsigned*>(best.ious + boxes);
      fill(best.ious, 0, boxes * sizeof(Bits<C>));
      fill(best.anchors, 0xff, boxes * sizeof(unsigned));
      launch(find_best_of_boxes<B, C>, "max_iou_match", blocks, kThreads, stream, args, best);
    }
    launch(match_anchors<B, C>, "max_iou_match", blocks, kThreads, stream, args, best);
    if (p.low_quality == LowQuality::kForce) {
      const auto images = static_cast<unsigned>(std::min(args.images, kMost));
      launch(force_boxes<C>, "max_iou_match", images, kThreads, stream, args, best);
    }
  });
}

}  // namespace boxloss::BOXLOSS_GPU
