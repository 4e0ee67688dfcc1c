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

/// Each block has a part of an image's anchors, and the image's boxes in shared memory; a group
/// skips boxes that do not reach the bounds of its kLanes neighbouring anchors. The parts are dealt
/// to kShares, and a box's best IoU of each share is kept: low quality looks again only at the
/// anchors of shares whose best is the best of all.
namespace boxloss::BOXLOSS_GPU {

constexpr unsigned kShares = 16;
constexpr int kBlocksOfProcessor = 12;  ///< twice those that run at once: some end early

/// Aligned for wide loads.
template <class B>
struct alignas(16) StagedBox {
  MatchBox<B> box;
};

/// The least number of the group, or a float next below it.
template <class C>
__device__ float floor_of_lanes(C value) {
  constexpr unsigned kSign = 1u << 31;
  const auto rounded = static_cast<float>(value);
  const auto bits = bit_cast<unsigned>(rounded);
  unsigned ordered = (bits & kSign) != 0 ? ~bits : bits | kSign;
  if (rounded > value) --ordered;
  ordered = least_of_lanes(ordered);
  return bit_cast<float>((ordered & kSign) != 0 ? ordered ^ kSign : ~ordered);
}

template <class C>
__device__ Box<C> bounds_of_lanes(const Box<C>& own) {
  return {floor_of_lanes(own.x1), floor_of_lanes(own.y1), -floor_of_lanes(-own.x2),
          -floor_of_lanes(-own.y2)};
}

/// The best IoUs of boxes in the share of an image's part.
template <class C>
__device__ Bits<C>* best_of_share(const MaxIouArgs<C>& a, const BestOfBoxes<C>& best,
                                  unsigned part) {
  return best.ious + (1 + part % kShares) * a.boxes;
}

template <class B, class C>
__global__ void __launch_bounds__(kThreads)
    match_anchors(BOXLOSS_GRID_CONSTANT const MaxIouArgs<C> a, const BestOfBoxes<C> best,
                  const unsigned parts) {
  __shared__ StagedBox<B> staged[kThreads];
  __shared__ Bits<C> most[kThreads];
  const bool are_right = block_are_in_order(a.offsets, a.images, a.boxes);
  const bool has_low_quality = a.low_quality != LowQuality::kNone;
  const unsigned thread = threadIdx.x, lane = thread % kLanes, part = blockIdx.x % parts;
  const auto last = static_cast<unsigned>(a.anchor_count - 1);
#pragma unroll 1
  for (std::int64_t image = blockIdx.x / parts; image < a.images; image += gridDim.x / parts) {
    const OwnBoxes own = own_boxes(a, image, are_right);
    const auto begin = static_cast<unsigned>(own.begin), end = static_cast<unsigned>(own.end);
    unsigned staged_from = end;  // none is
    const auto raise_best = [&] {
      const unsigned row = staged_from + thread;
      if (row >= end || most[thread] == 0) return;
      atomicMax(&best.ious[row], most[thread]);
      atomicMax(&best_of_share(a, best, part)[row], most[thread]);
    };
#pragma unroll 1
    for (unsigned tile = part * kThreads; tile <= last; tile += parts * kThreads) {
      const unsigned slot = tile + thread;
      const auto anchor =
          match_box_at<B>(a.anchors, a.angle_unit, image, slot < last ? slot : last);
      const Box<C> bounds = bounds_of_lanes(bounds_of(anchor));
      C best_iou = 0;
      unsigned best_row = begin;
#pragma unroll 1
      for (unsigned first = begin; first < end; first += kThreads) {
        if (first != staged_from) {
          __syncthreads();
          raise_best();
          staged_from = first;
          most[thread] = 0;
          if (first + thread < end) {
            staged[thread].box = match_box_at<B>(a.target, a.angle_unit, 0, first + thread);
          }
          __syncthreads();
        }
        const unsigned left = end - first, count = left < kThreads ? left : kThreads;
#pragma unroll 1
        for (unsigned some = 0; some < count; some += kLanes) {
          const unsigned own_box = some + lane;
          unsigned reached =
              lanes_where(own_box < count && can_overlap(extent_of(staged[own_box].box), bounds));
#pragma unroll 1
          for (; reached != 0; reached &= reached - 1) {
            const unsigned k = some + first_lane(reached);
            const MatchBox<B> box = staged[k].box;
            if (!may_overlap(box, anchor)) continue;
            const C iou = iou_of(box, anchor);
            if (is_better(iou, best_iou)) {
              best_iou = iou;
              best_row = first + k;
            }
            if (has_low_quality && bits_of(iou) > most[k]) atomicMax(&most[k], bits_of(iou));
          }
        }
      }
      if (slot > last) continue;
      write_match(a, image, slot, begin < end ? match_of(a, best_iou, best_row) : kNoBox, best_iou);
    }
    __syncthreads();
    raise_best();
  }
}

/// The box that an anchor overlaps most, once more.
template <class B, class C>
__device__ std::int64_t best_row(const MaxIouArgs<C>& a, const MatchBox<B>& anchor,
                                 const OwnBoxes& own) {
  C best = 0;
  std::int64_t best_row = own.begin;
#pragma unroll 1
  for (std::int64_t row = own.begin; row < own.end; ++row) {
    const MatchBox<B> box = match_box_at<B>(a.target, a.angle_unit, 0, row);
    if (!may_overlap(box, anchor)) continue;
    const C iou = iou_of(box, anchor);
    if (!is_better(iou, best)) continue;
    best = iou;
    best_row = row;
  }
  return best_row;
}

/// What low quality changes. A block sees only those boxes whose best IoU is in its share.
template <class B, class C>
__global__ void __launch_bounds__(kThreads)
    mark_anchors(BOXLOSS_GRID_CONSTANT const MaxIouArgs<C> a, const BestOfBoxes<C> best,
                 const unsigned parts) {
  __shared__ StagedBox<B> staged[kThreads];
  __shared__ C ious[kThreads];
  __shared__ unsigned rows[kThreads], count;
  const bool are_right = block_are_in_order(a.offsets, a.images, a.boxes);
  const unsigned part = blockIdx.x % parts;
  const Bits<C>* const of_share = best_of_share(a, best, part);
#pragma unroll 1
  for (std::int64_t image = blockIdx.x / parts; image < a.images; image += gridDim.x / parts) {
    const OwnBoxes own = own_boxes(a, image, are_right);
#pragma unroll 1
    for (std::int64_t first = own.begin; first < own.end; first += kThreads) {
      __syncthreads();
      if (threadIdx.x == 0) count = 0;
      __syncthreads();
      const std::int64_t row = first + threadIdx.x;
      // A box that overlaps nothing is forced on the first anchor, without a search.
      if (row < own.end && of_share[row] == best.ious[row] && takes_low_quality(a, best.iou(row)) &&
          (a.low_quality != LowQuality::kForce || best.ious[row] != 0)) {
        const unsigned i = atomicAdd(&count, 1u);
        staged[i].box = match_box_at<B>(a.target, a.angle_unit, 0, row);
        ious[i] = best.iou(row);
        rows[i] = static_cast<unsigned>(row);
      }
      __syncthreads();
      if (count == 0) continue;
#pragma unroll 1
      for (std::int64_t slot = part * kThreads + threadIdx.x; slot < a.anchor_count;
           slot += parts * kThreads) {
        const auto anchor = match_box_at<B>(a.anchors, a.angle_unit, image, slot);
        std::int64_t mark = kNoBox;
#pragma unroll 1
        for (unsigned i = 0; i < count; ++i) {
          const MatchBox<B> box = staged[i].box;
          const C iou = may_overlap(box, anchor) ? iou_of(box, anchor) : C(0);
          if (iou != ious[i]) continue;
          if (mark < rows[i]) mark = rows[i];
          if (a.low_quality == LowQuality::kForce) {
            atomicMin(&best.anchors[rows[i]], static_cast<unsigned>(slot));
          }
        }
        if (mark == kNoBox || a.low_quality == LowQuality::kForce) continue;
        if (a.low_quality == LowQuality::kArgmax) mark = best_row(a, anchor, own);
        a.target_index.set(image * a.anchor_count + slot, mark);
      }
    }
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
  const std::size_t of_box = (1 + kShares) * size_of(compute_dtype(p)) + sizeof(unsigned);
  return static_cast<std::size_t>(p.target.slots) * of_box;
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
    const std::int64_t wanted = kBlocksOfProcessor * processor_count(execution.device_index);
    const std::int64_t parts =
        std::clamp(wanted / args.images, std::int64_t{1}, ceil_div(args.anchor_count, kThreads));
    const std::int64_t blocks = parts * std::min(args.images, kMost / parts);
    const auto launch_parts = [&](auto kernel, const BestOfBoxes<C>& best) {
      launch(kernel, "max_iou_match", static_cast<unsigned>(blocks), kThreads, stream, args, best,
             static_cast<unsigned>(parts));
    };
    BestOfBoxes<C> best = {};
    if (p.low_quality != LowQuality::kNone) {
      best = best_of_boxes(execution.workspace, args, 1 + kShares, fill);
    }
    launch_parts(match_anchors<B, C>, best);
    if (p.low_quality != LowQuality::kNone) launch_parts(mark_anchors<B, C>, best);
    if (p.low_quality == LowQuality::kForce) {
      const auto images = static_cast<unsigned>(std::min(args.images, kMost));
      launch(force<C>, "max_iou_match", images, kThreads, stream, args, best);
    }
  });
}

}  // namespace boxloss::BOXLOSS_GPU
