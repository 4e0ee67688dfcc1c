// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "math/giou.hpp"
#include "pairing/with_pairing.hpp"
#include "reduce.hpp"
#include "vector_io.hpp"

/// The loops over pairs, for any formula, pairing and dtypes, in two shapes. Flat, for contiguous
/// boxes without images: a thread takes neighbouring boxes. Strided, for everything else: a warp
/// takes part of one image's slots.
namespace boxloss::gpu {

/// What both passes read.
template <class C>
struct PairArgs {
  Elements<Any> weight;  ///< null data: none
  Eps<C> eps;
  std::int64_t images, slots;
};

template <class C>
struct ForwardArgs : PairArgs<C> {
  C* losses;  ///< null data: the losses are reduced
  Reducer<C> reducer;
};

template <class P, class T, class C>
struct BackwardArgs : PairArgs<C> {
  const C* grad_loss;
  std::int64_t grad_image_stride, grad_slot_stride;
  const C* scale;
  BoxOutputs<P> d_pred;    // each with null data where
  BoxOutputs<T> d_target;  // it is not wanted
  Outputs<Any> d_weight;
};

template <class Formula, class C>
__device__ C weighted_loss(const PairArgs<C>& a, const Box<C>& pred, BoxFormat pred_format,
                           const Box<C>& target, BoxFormat target_format, std::int64_t row) {
  const C loss =
      Formula::loss(to_corners(pred, pred_format), to_corners(target, target_format), a.eps);
  return a.weight.data == nullptr ? loss : loss * a.weight.template get<C>(row);
}

/// One pair's gradients, in the boxes' own formats; all zero as long as nothing is assigned.
template <class C>
struct Gradients {
  Box<C> pred{}, target{};
  C weight = 0;
};

template <class Formula, class C>
__device__ Gradients<C> weighted_gradients(const PairArgs<C>& a, C by_loss, const Box<C>& pred,
                                           BoxFormat pred_format, const Box<C>& target,
                                           BoxFormat target_format, std::int64_t row) {
  const PairGradient<C> d =
      Formula::gradient(to_corners(pred, pred_format), to_corners(target, target_format), a.eps);
  const C by_pair = a.weight.data == nullptr ? by_loss : by_loss * a.weight.template get<C>(row);
  return {from_corners_gradient(by_pair * d.pred, pred_format),
          from_corners_gradient(by_pair * d.target, target_format), by_loss * d.loss};
}

/// What every forward kernel ends with.
template <class C>
__device__ void finish_forward(const ForwardArgs<C>& a, const Partial& own) {
  if (a.losses == nullptr) {
    reduce_grid(a.reducer, own);
  } else if (blockIdx.x == 0 && threadIdx.x == 0) {
    *a.reducer.scale = C(1);
  }
}

// ---- flat ------------------------------------------------------------------------------------

/// Consecutive boxes that one thread takes: as many as make the smaller operand a load of
/// at least 16 bytes.
template <class P, class T>
constexpr int kGroup = sizeof(P) == 1 || sizeof(T) == 1   ? 4
                       : sizeof(P) == 2 || sizeof(T) == 2 ? 2
                                                          : 1;

/// In backward the gradients count as well: a thread that stores more than 32 bytes of them leaves
/// gaps between its stores and its neighbours'.
template <class P, class T>
constexpr int kBackwardGroup = sizeof(P) >= 4 && kGroup<P, T> > 2 ? 2 : kGroup<P, T>;

/// Groups of boxes that a thread of forward_flat has in flight. Where most slots may not count,
/// small tiles keep more processors busy.
template <int kBoxes, class Pairing>
constexpr int kUnroll = std::is_same_v<Pairing, Dense> || kBoxes < 4 ? 2 : 1;

template <class P, class T>
struct FlatBoxes {
  const P* pred;
  const T* target;
  BoxFormat pred_format, target_format;
};

template <class Pairing>
constexpr bool kAllCount = std::is_same_v<Pairing, Dense>;

/// Which boxes of a group count: a bit for each.
template <int kBoxes, class C, class Pairing, class T>
__device__ unsigned counted_boxes(const Pairing& pairing, const Pack<T, 4 * kBoxes>& target,
                                  std::int64_t first) {
  unsigned counted = 0;
#pragma unroll
  for (int i = 0; i < kBoxes; ++i) {
    const bool counts = pairing.counts(first + i) && pairing.counts(box_at<C>(target, i));
    counted |= counts ? 1u << i : 0u;
  }
  return counted;
}

/// The losses of kGroups groups of kBoxes boxes; group u begins at box first + u * stride.
template <class Formula, bool kPlain, int kBoxes, int kGroups, class P, class T, class C,
          class Pairing>
__device__ Partial forward_groups(const ForwardArgs<C>& a, const FlatBoxes<P, T>& boxes,
                                  const Pairing& pairing, std::int64_t first, int stride) {
  // All loads first, so that they are in flight together.
  Pack<P, 4 * kBoxes> pred[kGroups];
  Pack<T, 4 * kBoxes> target[kGroups];
  unsigned counted[kGroups];
#pragma unroll
  for (int u = 0; u < kGroups; ++u) {
    target[u] = load_pack<T, 4 * kBoxes>(boxes.target + 4 * (first + u * stride));
    if (kAllCount<Pairing>) {
      pred[u] = load_pack<P, 4 * kBoxes>(boxes.pred + 4 * (first + u * stride));
    }
  }
#pragma unroll
  for (int u = 0; u < kGroups; ++u) {
    counted[u] = counted_boxes<kBoxes, C>(pairing, target[u], first + u * stride);
    if (!kAllCount<Pairing> && counted[u] != 0) {
      pred[u] = load_pack<P, 4 * kBoxes>(boxes.pred + 4 * (first + u * stride));
    }
  }

  const auto pred_format = static_cast<BoxFormat>(opaque(static_cast<int>(boxes.pred_format)));
  const auto target_format = static_cast<BoxFormat>(opaque(static_cast<int>(boxes.target_format)));
  C sum = 0;  // of a few boxes only: the long sum is double
  Counter count = 0;
#pragma unroll
  for (int u = 0; u < kGroups; ++u) {
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      const std::int64_t row = first + u * stride + i;
      C loss = 0;
      if (counted[u] >> i & 1u) {
        const Box<C> p = box_at<C>(pred[u], i);
        const Box<C> t = box_at<C>(target[u], i);
        loss = kPlain ? Formula::loss(p, t, a.eps)
                      : weighted_loss<Formula>(a, p, pred_format, t, target_format, row);
      }
      if (!kPlain && a.losses != nullptr) a.losses[row] = loss;
      sum += loss;
    }
    count += __popc(counted[u]);
  }
  return {static_cast<double>(sum), count};
}

/// kPlain: xyxy boxes, no weight, a reduced loss. Left as run-time branches these questions cost
/// the small dtypes a third of their speed.
template <class Formula, class P, class T, class C, class Pairing, bool kPlain>
__global__ void __launch_bounds__(kThreads)
    forward_flat(const ForwardArgs<C> a, const FlatBoxes<P, T> boxes, const Pairing pairing) {
  constexpr int kBoxes = kGroup<P, T>;
  constexpr int kStride = kThreads * kBoxes;
  constexpr int kGroups = kUnroll<kBoxes, Pairing>;
  constexpr std::int64_t kTile = kStride * kGroups;
  const std::int64_t tiles = a.slots / kTile;
  Partial own{0, 0};
#pragma unroll 1  // the instruction cache holds one body, not four
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    own += forward_groups<Formula, kPlain, kBoxes, kGroups>(
        a, boxes, pairing, tile * kTile + threadIdx.x * kBoxes, kStride);
  }
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
#pragma unroll 1
  for (std::int64_t box = tiles * kTile + thread; box < a.slots; box += gridDim.x * kThreads) {
    own += forward_groups<Formula, kPlain, 1, 1>(a, boxes, pairing, box, 0);
  }
  finish_forward(a, own);
}

/// The gradients of kBoxes boxes.
template <class Formula, bool kPlain, int kBoxes, class P, class T, class C, class Pairing>
__device__ void backward_group(const BackwardArgs<P, T, C>& a, const FlatBoxes<P, T>& boxes,
                               const Pairing& pairing, std::int64_t first) {
  Pack<P, 4 * kBoxes> pred;
  const auto target = load_pack<T, 4 * kBoxes>(boxes.target + 4 * first);
  if (kAllCount<Pairing>) pred = load_pack<P, 4 * kBoxes>(boxes.pred + 4 * first);
  const C scale = *a.scale;
  const C by_reduced_loss = kPlain ? scale * *a.grad_loss : C(0);
  const unsigned counted = counted_boxes<kBoxes, C>(pairing, target, first);
  if (!kAllCount<Pairing> && counted != 0) {
    pred = load_pack<P, 4 * kBoxes>(boxes.pred + 4 * first);
  }

  Gradients<C> d[kBoxes];
#pragma unroll
  for (int i = 0; i < kBoxes; ++i) {
    if (!(counted >> i & 1u)) continue;
    const Box<C> p = box_at<C>(pred, i);
    const Box<C> t = box_at<C>(target, i);
    if (kPlain) {
      d[i].pred = by_reduced_loss * Formula::gradient(p, t, a.eps).pred;
    } else {
      const C by_loss = scale * a.grad_loss[(first + i) * a.grad_slot_stride];
      d[i] = weighted_gradients<Formula>(a, by_loss, p, boxes.pred_format, t, boxes.target_format,
                                         first + i);
    }
  }
  if (kPlain || a.d_pred.values.data != nullptr) {
    Pack<P, 4 * kBoxes> d_pred;
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) set_box_at(d_pred, i, d[i].pred);
    store_pack(a.d_pred.values.data + 4 * first, d_pred);
  }
  if (kPlain) return;
  if constexpr (!std::is_integral_v<T>) {
    if (a.d_target.values.data != nullptr) {
      Pack<T, 4 * kBoxes> d_target;
#pragma unroll
      for (int i = 0; i < kBoxes; ++i) set_box_at(d_target, i, d[i].target);
      store_pack(a.d_target.values.data + 4 * first, d_target);
    }
  }
  if (a.d_weight.data != nullptr) {
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) a.d_weight.set(first + i, d[i].weight);
  }
}

/// kPlain: xyxy boxes, no weight, a reduced loss, and only pred's gradient is wanted.
template <class Formula, class P, class T, class C, class Pairing, bool kPlain>
__global__ void __launch_bounds__(kThreads)
    backward_flat(const BackwardArgs<P, T, C> a, const FlatBoxes<P, T> boxes,
                  const Pairing pairing) {
  constexpr int kBoxes = kBackwardGroup<P, T>;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t first = thread * kBoxes;
  if (first + kBoxes <= a.slots) {
    backward_group<Formula, kPlain, kBoxes>(a, boxes, pairing, first);
  } else {
    for (std::int64_t box = first; box < a.slots; ++box) {
      backward_group<Formula, kPlain, 1>(a, boxes, pairing, box);
    }
  }
}

// ---- strided ---------------------------------------------------------------------------------

/// Slots of one image that a warp takes at a time.
constexpr int kWarpSlots = 256;

/// A part of an image: its slots [begin, end), and this lane's place among all lanes that work on
/// the image.
struct WarpTask {
  std::int64_t image, begin, end;
  std::int64_t worker, workers;
};

/// Calls use(task) for each part of an image that falls to this warp.
template <class Use>
__device__ void for_each_warp_task(std::int64_t images, std::int64_t slots, const Use& use) {
  const std::int64_t parts = (slots + kWarpSlots - 1) / kWarpSlots;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (kThreads / kWarpSize);
  const int lane = threadIdx.x % kWarpSize;
  std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarpSize;
  for (; i < images * parts; i += warps) {
    const std::int64_t b = parts == 1 ? i : i / parts;
    const std::int64_t part = i - b * parts;
    const std::int64_t begin = part * kWarpSlots;
    const std::int64_t end = begin + kWarpSlots < slots ? begin + kWarpSlots : slots;
    use(WarpTask{b, begin, end, part * kWarpSize + lane, parts * kWarpSize});
  }
}

/// Calls zero(row), shared among all lanes of the image, for the rows that no counted slot can
/// write.
template <class Pairing, class Zero>
__device__ void for_each_uncounted_row(const Pairing& pairing, const WarpTask& task,
                                       const ImageSlots& image, const Zero& zero) {
  const RowRange rows = pairing.rows(task.image);
  for (std::int64_t row = rows.begin + task.worker; row < image.row; row += task.workers) {
    zero(row);
  }
  const std::int64_t behind = image.row + image.count;
  for (std::int64_t row = behind + task.worker; row < rows.end; row += task.workers) zero(row);
}

template <class Formula, class P, class T, class C, class Pairing>
__global__ void __launch_bounds__(kThreads)
    forward_strided(const ForwardArgs<C> a, const StridedBoxes<P> preds,
                    const StridedBoxes<T> targets, const Pairing pairing) {
  const int lane = threadIdx.x % kWarpSize;
  Partial own{0, 0};

  for_each_warp_task(a.images, a.slots, [&](const WarpTask& task) {
    const std::int64_t b = task.image;
    const ImageSlots image = pairing.image(b);
    const std::int64_t stop = image.count < task.end ? image.count : task.end;
    for (std::int64_t j = task.begin + lane; j < stop; j += kWarpSize) {
      const std::int64_t row = image.row + j;
      C loss = 0;
      if (pairing.counts(row)) {
        const Box<C> target = targets.template get<C>(b, image.target + j);
        if (pairing.counts(target)) {
          loss = weighted_loss<Formula>(a, preds.template get<C>(b, j), preds.boxes.format, target,
                                        targets.boxes.format, row);
          ++own.count;
        }
      }
      if (a.losses != nullptr) a.losses[row] = loss;
      own.sum += static_cast<double>(loss);
    }
    if (a.losses != nullptr) {
      for_each_uncounted_row(pairing, task, image, [&](std::int64_t row) { a.losses[row] = 0; });
    }
  });
  finish_forward(a, own);
}

template <class Formula, class P, class T, class C, class Pairing>
__global__ void __launch_bounds__(kThreads)
    backward_strided(const BackwardArgs<P, T, C> a, const StridedBoxes<P> preds,
                     const StridedBoxes<T> targets, const Pairing pairing) {
  const int lane = threadIdx.x % kWarpSize;
  const C scale = *a.scale;

  for_each_warp_task(a.images, a.slots, [&](const WarpTask& task) {
    const std::int64_t b = task.image;
    const ImageSlots image = pairing.image(b);
    for (std::int64_t j = task.begin + lane; j < task.end; j += kWarpSize) {
      const std::int64_t row = image.row + j;
      Gradients<C> d;
      if (j < image.count && pairing.counts(row)) {
        const Box<C> target = targets.template get<C>(b, image.target + j);
        if (pairing.counts(target)) {
          const C by_loss =
              scale *
              a.grad_loss[b * a.grad_image_stride + (image.target + j) * a.grad_slot_stride];
          d = weighted_gradients<Formula>(a, by_loss, preds.template get<C>(b, j),
                                          preds.boxes.format, target, targets.boxes.format, row);
        }
      }
      if (a.d_pred.values.data != nullptr) a.d_pred.set(b * a.slots + j, d.pred);
      if (j >= image.count) continue;
      if constexpr (!std::is_integral_v<T>) {
        if (a.d_target.values.data != nullptr) a.d_target.set(row, d.target);
      }
      if (a.d_weight.data != nullptr) a.d_weight.set(row, d.weight);
    }
    const bool writes_rows = a.d_weight.data != nullptr || a.d_target.values.data != nullptr;
    if (!writes_rows) return;
    for_each_uncounted_row(pairing, task, image, [&](std::int64_t row) {
      if constexpr (!std::is_integral_v<T>) {
        if (a.d_target.values.data != nullptr) a.d_target.set(row, Box<C>{});
      }
      if (a.d_weight.data != nullptr) a.d_weight.set(row, C(0));
    });
  });
}

}  // namespace boxloss::gpu
