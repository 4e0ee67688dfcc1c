// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <algorithm>

#include "dispatch/matching_cost.hpp"
#include "math/ceil_div.hpp"
#include "operations.hpp"
#include "threads.hpp"

/// The matcher's cost: a block of threads takes a tile of queries of one image in one layer, which
/// all its threads read from shared memory, and all columns of that image. Lanes are columns.
namespace boxloss::BOXLOSS_GPU {

constexpr int kMostQueries = 128;
constexpr int kQueriesAtOnce = kThreads / kLanes;

template <class F, class C>
struct CostTile {
  CostBoxOf<F, C> queries[kMostQueries];
};

template <bool kPlain, class F, class C>
__global__ void __launch_bounds__(kThreads)
    matching_cost_tiles(const CostArgs<F, C> a, const int queries_of_tile) {
  __shared__ CostTile<F, C> shared;
  const std::int64_t tiles_of_block = ceil_div(a.queries, queries_of_tile);
  const int lane = threadIdx.x % kLanes, first_query = threadIdx.x / kLanes;
#pragma unroll 1
  for (std::int64_t tile = blockIdx.x; tile < a.blocks * tiles_of_block; tile += gridDim.x) {
    const std::int64_t block = tile / tiles_of_block;
    const std::int64_t begin = (tile - block * tiles_of_block) * queries_of_tile;
    const std::int64_t left = a.queries - begin;
    const int queries = static_cast<int>(left < queries_of_tile ? left : queries_of_tile);
    const int own_query = static_cast<int>(threadIdx.x);
    if (own_query < queries) {
      shared.queries[own_query] = cost_box(a, a.pred, block, begin + own_query);
    }
    __syncthreads();
    const std::int64_t b = a.image_of(block);
    const ImageSlots own = a.owners.image(b);
    const RowRange all = a.owners.rows(b);
    float* const rows = a.row(block, begin + first_query);
    const std::int64_t stride = kQueriesAtOnce * a.columns;
#pragma unroll 1
    for (std::int64_t t = all.begin + lane; t < all.end; t += kLanes) {
      float* entry = rows + t;
      if (t < own.row || t >= own.row + own.count) {
#pragma unroll 1
        for (int q = first_query; q < queries; q += kQueriesAtOnce, entry += stride) *entry = 0;
        continue;
      }
      const auto column = cost_box(a, a.target, 0, t);
      const std::int64_t score = score_of_column(a, t);
      if (score == kNoScore) {
#if defined(__CUDA_ARCH__)
#pragma unroll 2
#else  // AMD's compiler cannot
#pragma unroll 1
#endif
        for (int q = first_query; q < queries; q += kQueriesAtOnce, entry += stride) {
          *entry = entry_of<kPlain>(a, shared.queries[q], column, C(0));
        }
        continue;
      }
      std::int64_t at = first_score(a, block, begin + first_query) + score;
#pragma unroll 1
      for (int q = first_query; q < queries; q += kQueriesAtOnce, entry += stride) {
        const C class_term = class_term_of(a, score_at(a, at));
        *entry = entry_of<kPlain>(a, shared.queries[q], column, class_term);
        at += kQueriesAtOnce * a.score_query_stride;
      }
    }
    __syncthreads();
  }
}

/// Queries of a tile. Large tiles read less of the columns, but each processor should have several
/// tiles.
int queries_of_tile(const PairwiseProblem& p, int device) {
  int queries = kMostQueries;
  const std::int64_t wanted = 4 * processor_count(device);
  while (queries > kQueriesAtOnce && p.pred.images * ceil_div(p.pred.slots, queries) < wanted) {
    queries /= 2;
  }
  return queries;
}

template <class F, class C>
void launch(const CostArgs<F, C>& args, const PairwiseProblem& p, const Execution& execution) {
  const int queries = queries_of_tile(p, execution.device_index);
  const std::int64_t tiles = p.pred.images * ceil_div(p.pred.slots, queries);
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, 0x7fffffff));
  const auto kernel =
      is_plain(args) ? matching_cost_tiles<true, F, C> : matching_cost_tiles<false, F, C>;
  launch(kernel, "matching_cost", blocks, kThreads, static_cast<Stream>(execution.stream), args,
         queries);
}

/// Losses that matchers and assigners use most have kernels of their own: what depends on the
/// column alone, such as CIoU's angle, then moves out of the loop.
template <class C>
void launch(const CostProblem& p, float* cost, const Execution& execution) {
  const auto launch_with = [&](auto formula) {
    launch(cost_args<C>(formula, p, cost), p, execution);
  };
  if (p.loss == Loss::kCiou) return launch_with(Ciou());
  with_giou_or_any(p.loss, launch_with);
}

template <class C>
void launch(const RotatedCostProblem& p, float* cost, const Execution& execution) {
  launch(cost_args<C>(p, cost), p, execution);
}

template <class Problem>
void Operations::matching_cost(const Problem& p, float* cost, const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  const auto zero = [&](void* data, std::size_t bytes) {
    zero_async(data, bytes, static_cast<Stream>(execution.stream));
  };
  dispatch(p, cost, zero, [&](auto compute) { launch<decltype(compute)>(p, cost, execution); });
}

template void Operations::matching_cost(const CostProblem&, float*, const Execution&);
template void Operations::matching_cost(const RotatedCostProblem&, float*, const Execution&);

}  // namespace boxloss::BOXLOSS_GPU
