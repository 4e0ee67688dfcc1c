// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <algorithm>

#include "dispatch/task_aligned_match.hpp"
#include "math/ceil_div.hpp"
#include "offsets.hpp"
#include "operations.hpp"
#include "threads.hpp"

/// The task-aligned match in up to four launches. A block of threads for each box tells its
/// candidates which overlap they have, and chooses; a thread for each anchor finds whose it is; a
/// block for each box drops what it may not keep; a thread for each anchor writes its score.
/// Threads meet only in atomic maxima, and in sums that are exact, of integers: the result has the
/// same bits every time.
namespace boxloss::BOXLOSS_GPU {

constexpr unsigned kMatchThreads = kThreads;

/// How many boxes chose an anchor, in the high half, and the sum of these boxes' numbers, in the
/// low half. If only one box did, the sum is its number.
using Choosers = unsigned long long;

/// The highest metric and the highest overlap among a box's anchors, as bits, which are in the same
/// order as the numbers.
struct MostBits {
  unsigned metric, overlap;
};

/// The workspace, 0 at first.
struct MatchWork {
  Rank* best;          ///< (images, anchors): the overlap that is highest, and its box
  Choosers* choosers;  ///< (images, anchors)
  MostBits* most;      ///< (rows)
  std::size_t bytes;

  MatchWork(const TaskAlignedProblem& p, void* workspace) {
    const auto anchors = static_cast<std::size_t>(p.images * p.anchors);
    const auto rows = static_cast<std::size_t>(p.target.images * p.target.slots);
    best = static_cast<Rank*>(workspace);
    choosers = best + anchors;
    most = reinterpret_cast<MostBits*>(choosers + anchors);
    bytes = anchors * (sizeof(Rank) + sizeof(Choosers)) + rows * sizeof(MostBits);
  }
};

__device__ inline void raise(const MatchWork& work, std::int64_t row, const Match& match) {
  atomicMax(&work.most[row].metric, bit_cast<unsigned>(match.metric));
  atomicMax(&work.most[row].overlap, bit_cast<unsigned>(match.overlap));
}

// --- The best of many

constexpr unsigned kMostAtOnce = 512;  ///< that are found in one pass
constexpr unsigned kBatch = 4 * kMatchThreads;

/// Ranks, of which the highest are kept.
struct Collection {
  Rank ranks[kMostAtOnce + kBatch], sorted[kMostAtOnce];
  unsigned count;
};

/// Leaves the `most` highest, in their order; called by all threads, as they come to a barrier.
__device__ inline void keep_highest(Collection& all, unsigned most) {
  const unsigned count = all.count;
  for (unsigned i = threadIdx.x; i < count; i += kMatchThreads) {
    const Rank own = all.ranks[i];
    unsigned higher = 0;
    for (unsigned j = 0; j < count; ++j) higher += all.ranks[j] > own ? 1 : 0;
    if (higher < most) all.sorted[higher] = own;
  }
  __syncthreads();
  const unsigned left = count < most ? count : most;
  for (unsigned i = threadIdx.x; i < left; i += kMatchThreads) all.ranks[i] = all.sorted[i];
  if (threadIdx.x == 0) all.count = left;
  __syncthreads();
}

/// Calls use(rank) for the `most` highest of what rank_at(i, is_first_pass) gives for i in [0,
/// count), in which no two are equal and 0 is none. All threads call it together; each of them gets
/// the lowest of those, or 0 if there are fewer.
template <class RankAt, class Use>
__device__ Rank for_highest(unsigned count, std::int64_t most, const RankAt& rank_at,
                            const Use& use) {
  __shared__ Collection all;
  Rank ceiling = ~Rank{0};
  for (std::int64_t left = most; left > 0;) {
    const auto wanted = static_cast<unsigned>(left < kMostAtOnce ? left : kMostAtOnce);
    if (threadIdx.x == 0) all.count = 0;
    __syncthreads();
    Rank floor = 0;
    for (unsigned first = 0; first < count; first += kBatch) {
#pragma unroll 1
      for (unsigned i = first + threadIdx.x; i < first + kBatch && i < count; i += kMatchThreads) {
        const Rank rank = rank_at(i, left == most);
        if (rank > floor && rank < ceiling) all.ranks[atomicAdd(&all.count, 1u)] = rank;
      }
      __syncthreads();
      if (all.count > kMostAtOnce) {
        keep_highest(all, wanted);
        floor = all.ranks[wanted - 1];
      }
      __syncthreads();
    }
    keep_highest(all, wanted);
    const unsigned found = all.count;
    for (unsigned i = threadIdx.x; i < found; i += kMatchThreads) use(all.ranks[i]);
    const bool are_all = found < wanted;
    ceiling = are_all ? 0 : all.ranks[wanted - 1];
    left = are_all ? 0 : left - wanted;
    __syncthreads();
  }
  return ceiling;
}

// --- The launches

/// A block for each box.
template <class B>
__global__ void __launch_bounds__(kMatchThreads)
    choose_anchors(const TaskAlignedArgs<B> a, const MatchWork work) {
  if (!a.is_padded() && !block_are_in_order(a.offsets, a.images, a.rows)) return;
#pragma unroll 1
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const std::int64_t image = image_of_row(a, row);
    const BoxRows own = rows_of_image(a, image);
    const std::int64_t box = row - own.first;
    if (box < 0 || box >= own.count) continue;
    const TargetBox<B> target = target_box(a, row);
    if (target.label < 0) continue;
    const auto rank_at = [&](unsigned anchor, bool is_first_pass) -> Rank {
      if (!is_inside(point_at(a, image, anchor), target)) return 0;
      const Match match = match_of(a, image, anchor, target);
      if (is_first_pass && match.overlap > 0) {
        atomicMax(&work.best[image * a.anchors + anchor], rank_of(match.overlap, box));
      }
      return match.counts() ? rank_of(match.metric, anchor) : 0;
    };
    for_highest(static_cast<unsigned>(a.anchors), a.topk, rank_at, [&](Rank rank) {
      atomicAdd(&work.choosers[image * a.anchors + place_of(rank)],
                (Choosers{1} << 32) + static_cast<Choosers>(box));
    });
  }
}

/// A thread for each anchor. Writes the metric where the score will be.
template <class B>
__global__ void __launch_bounds__(kMatchThreads)
    find_owners(const TaskAlignedArgs<B> a, const MatchWork work) {
  const std::int64_t further = static_cast<std::int64_t>(gridDim.x) * kMatchThreads;
#pragma unroll 1
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kMatchThreads + threadIdx.x;
       at < a.images * a.anchors; at += further) {
    const Choosers choosers = work.choosers[at];
    const std::int64_t image = at / a.anchors, anchor = at - image * a.anchors;
    std::int64_t row = -1;
    Match match = {0, 0};
    if (choosers != 0) {
      const bool is_one = choosers >> 32 == 1;
      const Rank best = work.best[at];
      const unsigned told = best != 0 ? place_of(best) : 0;
      const auto target_of = [&](std::int64_t box) { return target_box(a, box); };
      const auto take = [&](std::int64_t taken) {
        row = taken;
        const TargetBox<B> target = target_of(row);
        if (is_inside(point_at(a, image, anchor), target)) {
          match = match_of(a, image, anchor, target);
        }
      };
      take(rows_of_image(a, image).first + (is_one ? static_cast<unsigned>(choosers) : told));
      // `best` does not show that a score is NaN, nor overlaps of 0. Both are rare.
      if (!is_one && (best == 0 || match.metric != match.metric)) {
        take(most_overlapping(a, image, anchor, target_of));
      }
      if (!match.counts()) {
        row = -1;
        match = {0, 0};
      }
    }
    set_owner(a, at, row, match);
    if (row >= 0 && a.topk2 == 0) raise(work, row, match);
  }
}

/// A block for each box, whose best topk2 anchors stay.
template <class B>
__global__ void __launch_bounds__(kMatchThreads)
    drop_others(const TaskAlignedArgs<B> a, const MatchWork work) {
#pragma unroll 1
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const std::int64_t first = image_of_row(a, row) * a.anchors;
    const auto rank_at = [&](unsigned anchor, bool) -> Rank {
      const std::int64_t at = first + anchor;
      return a.target_index.indices()[at] == row ? rank_of(a.score[at], anchor) : 0;
    };
    const auto anchors = static_cast<unsigned>(a.anchors);
    const Rank lowest = for_highest(anchors, a.topk2, rank_at, [&](Rank rank) {
      const std::int64_t at = first + place_of(rank);
      raise(work, row, {a.score[at], a.overlap[at]});
    });
    for (unsigned anchor = threadIdx.x; anchor < anchors; anchor += kMatchThreads) {
      const Rank rank = rank_at(anchor, false);
      if (rank != 0 && rank < lowest) set_owner(a, first + anchor, -1, {0, 0});
    }
  }
}

/// A thread for each anchor.
template <class B>
__global__ void __launch_bounds__(kMatchThreads)
    write_scores(const TaskAlignedArgs<B> a, const MatchWork work) {
  const std::int64_t further = static_cast<std::int64_t>(gridDim.x) * kMatchThreads;
#pragma unroll 1
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kMatchThreads + threadIdx.x;
       at < a.images * a.anchors; at += further) {
    const std::int64_t row = a.target_index.indices()[at];
    if (row < 0) continue;
    const MostBits most = work.most[row];
    a.score[at] =
        normalized(a.score[at], {bit_cast<float>(most.metric), bit_cast<float>(most.overlap)});
  }
}

unsigned blocks_of(std::int64_t count) {
  constexpr std::int64_t kMostBlocks = 1 << 20;
  return static_cast<unsigned>(std::min(count, kMostBlocks));
}

std::size_t workspace_bytes(const TaskAlignedProblem& p) { return MatchWork(p, nullptr).bytes; }

void task_aligned_match(const TaskAlignedProblem& p, const TaskAlignedOutputs& outputs,
                        const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  const Stream stream = static_cast<Stream>(execution.stream);
  const auto fill = [&](void* data, int byte, std::size_t bytes) {
    fill_async(data, byte, bytes, stream);
  };
  dispatch(p, outputs, fill, [&](auto box) {
    using B = decltype(box);
    const TaskAlignedArgs<B> args = task_aligned_args<B>(p, outputs);
    const MatchWork work(p, execution.workspace);
    const unsigned of_boxes = blocks_of(args.rows);
    const unsigned of_anchors = blocks_of(ceil_div(args.images * args.anchors, kMatchThreads));
    zero_async(work.best, work.bytes, stream);
    launch(choose_anchors<B>, "task_aligned_match", of_boxes, kMatchThreads, stream, args, work);
    launch(find_owners<B>, "task_aligned_match", of_anchors, kMatchThreads, stream, args, work);
    if (args.topk2 > 0) {
      launch(drop_others<B>, "task_aligned_match", of_boxes, kMatchThreads, stream, args, work);
    }
    launch(write_scores<B>, "task_aligned_match", of_anchors, kMatchThreads, stream, args, work);
  });
}

}  // namespace boxloss::BOXLOSS_GPU
