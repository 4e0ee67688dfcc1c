// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <algorithm>

#include "dispatch/distribution_loss.hpp"
#include "dtypes/packs.hpp"
#include "math/ceil_div.hpp"
#include "operations.hpp"
#include "set_sums.hpp"
#include "threads.hpp"

/// The losses of distributions: a block takes a tile of queries of one image in one set, a thread a
/// side. The block stages the tile's logits in shared memory, from which the threads read, and
/// through which they write slopes. Where too many bins leave no room, or a teacher's dtype is
/// another, threads read and write memory themselves.
namespace boxloss::BOXLOSS_GPU {

constexpr int kSideThreads = 128;
constexpr int kMostQueries = kSideThreads / kSides;
constexpr int kGroups = kSideThreads / kLanes;

template <class C>
using DistributionReducer = SetReducer<DistributionSum, ReducedDistributionLoss<C>>;

/// How queries are cut into tiles.
struct Tiling {
  int queries;  ///< of a tile, at most
  std::int64_t of_image;
};

struct Tile {
  std::int64_t row;  ///< its first
  int count;
};

template <class C>
__device__ Tile tile_at(const DistributionArgs<C>& a, const Tiling& tiling, std::int64_t i) {
  const std::int64_t image = i / tiling.of_image;
  const std::int64_t first = (i - image * tiling.of_image) * tiling.queries;
  const std::int64_t left = a.queries - first;
  return {image * a.queries + first,
          static_cast<int>(left < tiling.queries ? left : tiling.queries)};
}

template <class E>
constexpr int kPack = 16 / sizeof(E);

/// By all threads of a block.
template <class E>
__device__ void copy(const E* from, int count, E* to) {
  const auto addresses =
      reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to);
  const int packs = addresses % 16 == 0 ? count / kPack<E> : 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < packs; i += kSideThreads) {
    store_pack(to + i * kPack<E>, load_pack<E, kPack<E>>(from + i * kPack<E>));
  }
#pragma unroll 4
  for (int i = packs * kPack<E> + threadIdx.x; i < count; i += kSideThreads) to[i] = from[i];
}

/// A tile's logits, one query after the other; of queries that do not count, none or any.
template <class E, class C>
__device__ void stage(const DistributionArgs<C>& a, const Corners& corners, const Tile& tile,
                      E* to) {
  const E* const from = static_cast<const E*>(corners.values.data) + a.first_of(corners, tile.row);
  const int of_query = static_cast<int>(a.logits_of_query());
  if (corners.query_stride == of_query && !a.is_fgl()) {
    return copy(from, tile.count * of_query, to);
  }
#pragma unroll 1
  for (int query = threadIdx.x / kLanes; query < tile.count; query += kGroups) {
    if (!counts(a, target_of(a, tile.row + query))) continue;
    const E* const own = from + query * corners.query_stride;
#pragma unroll 4
    for (int i = threadIdx.x % kLanes; i < of_query; i += kLanes) to[query * of_query + i] = own[i];
  }
}

/// A side's logits in shared memory, where its slopes go, too.
template <class E, class C>
struct StagedSide {
  using Index = int;
  E* values;

  __device__ C operator[](Index bin) const { return convert_to<C>(values[bin]); }
  __device__ void set(Index bin, C value) const { boxloss::assign(values[bin], value); }
};

/// Of a block's tile. All of the block's threads must call it.
template <class E, class C>
struct Staged {
  using Side = StagedSide<E, C>;
  E *own, *teacher;

  __device__ Staged(const DistributionArgs<C>& a, const Tiling& tiling, const Tile& tile) {
    const int count = tiling.queries * static_cast<int>(a.logits_of_query());
    own = reinterpret_cast<E*>(dynamic_shared_memory());
    teacher = own + (count + kPack<E> - 1) / kPack<E> * kPack<E>;
    __syncthreads();  // the tile before has been read
    stage(a, a.logits, tile, own);
    if (!a.is_fgl()) stage(a, a.teacher, tile, teacher);
    __syncthreads();
  }
  __device__ Sides<Side> sides(const DistributionArgs<C>& a, std::int64_t, void*) const {
    const int first = threadIdx.x * static_cast<int>(a.bins);
    return {{own + first}, {teacher + first}};
  }
  /// Writes the tile's slopes.
  __device__ void write(const DistributionArgs<C>& a, const Tile& tile, void* gradient) const {
    __syncthreads();
    const std::int64_t of_query = a.logits_of_query();
    copy(own, tile.count * static_cast<int>(of_query),
         static_cast<E*>(gradient) + tile.row * of_query);
  }
};

template <class C>
struct Plain {
  using Side = PlainSide<Any, C>;

  __device__ Plain(const DistributionArgs<C>&, const Tiling&, const Tile&) {}
  __device__ Sides<Side> sides(const DistributionArgs<C>& a, std::int64_t row,
                               void* gradient) const {
    const Outputs<Any> slopes = {gradient, a.logits.values.dtype};
    return plain_sides(a, row, static_cast<int>(threadIdx.x % kSides), slopes);
  }
  __device__ void write(const DistributionArgs<C>&, const Tile&, void*) const {}
};

/// A thread that takes a side alone: lanes of core/kernels/team.hpp.
struct OneLane {
  template <class T, class Index, class Of>
  __device__ T largest(Index count, const Of& of) const {
    T found = -T(INFINITY);
#pragma unroll 4
    for (Index i = 0; i < count; ++i) found = larger(found, of(i));
    return found;
  }
  template <class T, class Index, class Of>
  __device__ T sum(Index count, const Of& of) const {
    T total = {};
#pragma unroll 4
    for (Index i = 0; i < count; ++i) total += of(i);
    return total;
  }
  template <class T>
  __device__ T share(T value) const {
    return value;
  }
  template <class Index, class Use>
  __device__ void for_each(Index count, const Use& use) const {
#pragma unroll 4
    for (Index i = 0; i < count; ++i) use(i);
  }
};

/// `In` is where logits are while threads read them: Staged or Plain.
template <class In, class C>
__global__ void __launch_bounds__(kSideThreads)
    distribution_loss_sides(const DistributionArgs<C> a, const Tiling tiling, C* losses,
                            const DistributionReducer<C> reducer) {
  const int side = threadIdx.x % kSides, query = threadIdx.x / kSides;
  const SetPart at = set_part(reducer.blocks_of_set);
  const std::int64_t of_set = a.images * tiling.of_image;
  DistributionSum own = {};
#pragma unroll 1
  for (std::int64_t i = at.part; i < of_set; i += reducer.blocks_of_set) {
    const Tile tile = tile_at(a, tiling, at.set * of_set + i);
    const In in(a, tiling, tile);
    const std::int64_t row = tile.row + query;
    const bool is_row = query < tile.count;
    const std::int64_t target = is_row ? target_of(a, row) : kIgnored;
    double sum = 0;
    if (counts(a, target)) {
      const auto sides = in.sides(a, row, nullptr);
      sum = static_cast<double>(side_loss(a, row, target, side, sides, OneLane()));
    }
    sum += shuffle_down(sum, 2);
    sum += shuffle_down(sum, 1);
    if (side != 0 || !is_row) continue;
    const double loss = counts(a, target) ? add_row(a, row, target, sum, own) : 0;
    if (losses != nullptr) losses[row] = static_cast<C>(loss);
  }
  reduce<kGroups>(reducer, own);
}

template <class In, class C>
__global__ void __launch_bounds__(kSideThreads)
    distribution_slopes_sides(const DistributionArgs<C> a, const Tiling tiling,
                              const DistributionGrad<C> grad, void* gradient) {
  const int side = threadIdx.x % kSides, query = threadIdx.x / kSides;
  const std::int64_t tiles = a.sets * a.images * tiling.of_image;
#pragma unroll 1
  for (std::int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    const Tile tile = tile_at(a, tiling, i);
    const In in(a, tiling, tile);
    const std::int64_t row = tile.row + query;
    if (query < tile.count) {
      const auto sides = in.sides(a, row, gradient);
      const std::int64_t target = target_of(a, row);
      if (counts(a, target)) {
        const RowPart<C> part = row_part(a, row, target);
        set_slopes(a, row, part, grad.by(a, row, part), side, sides, OneLane());
      } else {
        for (typename In::Side::Index bin = 0; bin < a.bins; ++bin) sides.own.set(bin, C(0));
      }
    }
    in.write(a, tile, gradient);
  }
}

/// A block's shared memory beside that for logits: the kernel's own variables, and what CUDA keeps.
constexpr int kBeside = 2048;
/// More would leave a processor fewer blocks.
constexpr int kMostShared = 48 << 10;

/// Calls use(In(), tiling, shared bytes), with In as a pointer's type.
template <class C, class Use>
void with_tiling(const DistributionLossProblem& p, int device, const Use& use) {
  const bool is_fgl = p.mode == DistributionLoss::kFgl;
  const int arrays = is_fgl ? 1 : 2;
  const auto stage_as = [&](auto element) {
    using E = decltype(element);
    const std::int64_t room = std::min(most_shared_bytes(device), kMostShared) - kBeside;
    const std::int64_t of_query = arrays * kSides * p.bins * static_cast<std::int64_t>(sizeof(E));
    const auto queries = static_cast<int>(std::min<std::int64_t>(room / of_query, kMostQueries));
    if (queries == 0) return false;
    // Each array ends with whole packs.
    const int bytes = queries * static_cast<int>(of_query) + arrays * 16;
    use(static_cast<Staged<E, C>*>(nullptr), Tiling{queries, ceil_div(p.queries, queries)}, bytes);
    return true;
  };
  bool is_staged = false;
  if (is_fgl || p.teacher.dtype == p.logits.dtype) {
    with_floating_type<C>(p.logits.dtype, [&](auto element) { is_staged = stage_as(element); });
  }
  if (is_staged) return;
  use(static_cast<Plain<C>*>(nullptr), Tiling{kMostQueries, ceil_div(p.queries, kMostQueries)}, 0);
}

std::size_t Operations::workspace_bytes(const DistributionLossProblem& p) {
  return sums_bytes<DistributionSum>(p.sets);
}

void Operations::distribution_loss(const DistributionLossProblem& p,
                                   const DistributionLossOutputs& outputs,
                                   const Execution& execution) {
  if (p.sets == 0) return;
  const DeviceScope scope(execution.device_index);
  with_compute_type(p, [&](auto compute) {
    using C = decltype(compute);
    const DistributionArgs<C> a = distribution_args<C>(p);
    const auto reduced = reduced_distribution_loss<C>(p, outputs);
    C* const losses = reduced.loss == nullptr ? static_cast<C*>(outputs.loss) : nullptr;
    with_tiling<C>(p, execution.device_index, [&](auto* in, const Tiling& tiling, int bytes) {
      using In = std::remove_pointer_t<decltype(in)>;
      const auto reducer =
          make_reducer<DistributionSum>(reduced, p.sets, p.images * tiling.of_image, 16, execution);
      launch_with_shared(distribution_loss_sides<In, C>, "distribution_loss", reducer.blocks(),
                         kSideThreads, bytes, static_cast<Stream>(execution.stream), a, tiling,
                         losses, reducer);
    });
  });
}

void Operations::distribution_loss_backward(const DistributionLossGradProblem& p,
                                            const DistributionLossGradOutputs& outputs,
                                            const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  const Stream stream = static_cast<Stream>(execution.stream);
  with_compute_type(p, [&](auto compute) {
    using C = decltype(compute);
    const DistributionArgs<C> a = distribution_args<C>(p);
    with_tiling<C>(p, execution.device_index, [&](auto* in, const Tiling& tiling, int bytes) {
      using In = std::remove_pointer_t<decltype(in)>;
      const std::int64_t tiles = p.sets * p.images * tiling.of_image;
      const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, 0x7fffffff));
      launch_with_shared(distribution_slopes_sides<In, C>, "distribution_loss_backward", blocks,
                         kSideThreads, bytes, stream, a, tiling, distribution_grad<C>(p),
                         outputs.logits);
    });
  });
}

}  // namespace boxloss::BOXLOSS_GPU
