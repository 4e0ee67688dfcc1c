// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "../../math/optimization_barrier.hpp"
#include "../../pairings/grid.hpp"
#include "../../pairings/offsets.hpp"
#include "pair_args.hpp"

/// Contiguous boxes of one image, in groups of neighbours that one thread takes at a time.
/// Backends' loops call this for pairings that do not depend on the image.
namespace boxloss {

/// The pairings that tell valid slots without knowing their image.
template <class Pairing>
constexpr bool kIsFlat = std::is_same_v<Pairing, Dense> || std::is_same_v<Pairing, ZeroPadded> ||
                         std::is_same_v<Pairing, Mask>;

template <class E, int kBoxes>
bool is_flat(const BoxView& view) {
  return view.images == 1 && view.slot_stride == 4 && view.coordinate_stride == 1 &&
         is_aligned<E, 4 * kBoxes>(view.data);
}

/// The plain case: xyxy boxes, no weight, a reduced loss. As run-time branches these conditions
/// cost the small dtypes a third of their speed.
inline bool is_plain(const LossProblem& p) {
  return p.pred.format == BoxFormat::kXyxy && p.target.format == BoxFormat::kXyxy &&
         p.weight.data == nullptr && p.reduction != Reduction::kNone;
}

/// Backward is plain if, besides, only pred's gradient is wanted.
inline bool is_plain(const LossProblem& p, const LossGradients& gradients) {
  return is_plain(p) && gradients.pred != nullptr && gradients.target == nullptr &&
         gradients.weight == nullptr;
}

/// The number of consecutive boxes that one thread takes: enough for the smaller operand's load to
/// be at least 16 bytes.
template <class P, class T>
constexpr int kGroup = sizeof(P) == 1 || sizeof(T) == 1   ? 4
                       : sizeof(P) == 2 || sizeof(T) == 2 ? 2
                                                          : 1;

/// Dtypes whose plain loops are bound by instructions. For them GIoU, the most common loss, has
/// loops of its own; all other losses and loops share one for each dtype.
template <class P, class T>
constexpr bool kOwnForGiou = kGroup<P, T> >= 2 && sizeof(T) <= 2;

/// Calls run(formula, plain), where the formula is GIoU's if GIoU has loops of its own, otherwise
/// AnyFormula, which selects the loss at run time.
template <class P, class T, class Run>
void with_flat_formula(Loss loss, bool plain, const Run& run) {
  if (!plain) return run(AnyFormula{loss}, std::false_type());
  if constexpr (kOwnForGiou<P, T>) {
    with_giou_or_any(loss, [&](auto formula) { run(formula, std::true_type()); });
  } else {
    run(AnyFormula{loss}, std::true_type());
  }
}

/// In backward the gradients matter as well: a thread that stores more than 32 bytes of them leaves
/// gaps between its stores and its neighbours'.
template <class P, class T>
constexpr int kBackwardGroup = sizeof(P) >= 4 && kGroup<P, T> > 2 ? 2 : kGroup<P, T>;

/// The number of groups of boxes that a thread of forward has in flight. Where most slots may be
/// invalid, smaller tiles keep more processors busy.
template <int kBoxes, class Pairing>
constexpr int kUnroll = std::is_same_v<Pairing, Dense> || kBoxes < 4 ? 2 : 1;

template <class P, class T>
struct FlatBoxes {
  const P* pred;
  const T* target;
  BoxFormat pred_format, target_format;
};

template <class P, class T>
FlatBoxes<P, T> flat_boxes(const LossProblem& p) {
  return {static_cast<const P*>(p.pred.data), static_cast<const T*>(p.target.data), p.pred.format,
          p.target.format};
}

template <class Pairing>
constexpr bool kAllCount = std::is_same_v<Pairing, Dense>;

/// The valid boxes of a group, a bit for each.
template <int kBoxes, class C, class Pairing, class T>
BOXLOSS_HOST_DEVICE unsigned counted_boxes(const Pairing& pairing,
                                           const Pack<T, 4 * kBoxes>& target, std::int64_t first) {
  unsigned counted = 0;
  BOXLOSS_UNROLL
  for (int i = 0; i < kBoxes; ++i) {
    const bool counts = pairing.counts(first + i) && pairing.counts(box_at<C>(target, i));
    counted |= counts ? 1u << i : 0u;
  }
  return counted;
}

/// The losses of kGroups groups of kBoxes boxes; group u begins at box first + u * stride.
template <bool kPlain, int kBoxes, int kGroups, class F, class P, class T, class C, class Pairing>
BOXLOSS_HOST_DEVICE LossPartial forward_groups(const ForwardArgs<F, C>& a,
                                               const FlatBoxes<P, T>& boxes, const Pairing& pairing,
                                               std::int64_t first, int stride) {
  // All loads first, so that they are in flight together.
  Pack<P, 4 * kBoxes> pred[kGroups];
  Pack<T, 4 * kBoxes> target[kGroups];
  unsigned counted[kGroups];
  BOXLOSS_UNROLL
  for (int u = 0; u < kGroups; ++u) {
    target[u] = load_pack<T, 4 * kBoxes>(boxes.target + 4 * (first + u * stride));
    if (kAllCount<Pairing>) {
      pred[u] = load_pack<P, 4 * kBoxes>(boxes.pred + 4 * (first + u * stride));
    }
  }
  BOXLOSS_UNROLL
  for (int u = 0; u < kGroups; ++u) {
    counted[u] = counted_boxes<kBoxes, C>(pairing, target[u], first + u * stride);
    if (!kAllCount<Pairing> && counted[u] != 0) {
      pred[u] = load_pack<P, 4 * kBoxes>(boxes.pred + 4 * (first + u * stride));
    }
  }

  const auto pred_format =
      static_cast<BoxFormat>(optimization_barrier(static_cast<int>(boxes.pred_format)));
  const auto target_format =
      static_cast<BoxFormat>(optimization_barrier(static_cast<int>(boxes.target_format)));
  C sum = 0;  // of a few boxes only: the long sum is double
  unsigned long long count = 0;
  BOXLOSS_UNROLL
  for (int u = 0; u < kGroups; ++u) {
    BOXLOSS_UNROLL
    for (int i = 0; i < kBoxes; ++i) {
      const std::int64_t row = first + u * stride + i;
      C loss = 0;
      if (counted[u] >> i & 1u) {
        ++count;
        const Box<C> p = box_at<C>(pred[u], i);
        const Box<C> t = box_at<C>(target[u], i);
        loss = kPlain ? a.formula.loss(p, t, a.constants)
                      : weighted_loss(a, p, pred_format, t, target_format, row);
      }
      if (!kPlain && a.losses != nullptr) a.losses[row] = loss;
      sum += loss;
    }
  }
  return {{static_cast<double>(sum)}, count};
}

/// The gradients of kBoxes boxes.
template <bool kPlain, int kBoxes, class F, class P, class T, class C, class Pairing>
BOXLOSS_HOST_DEVICE void backward_group(const BackwardArgs<F, P, T, C>& a,
                                        const FlatBoxes<P, T>& boxes, const Pairing& pairing,
                                        std::int64_t first) {
  Pack<P, 4 * kBoxes> pred;
  const auto target = load_pack<T, 4 * kBoxes>(boxes.target + 4 * first);
  if (kAllCount<Pairing>) pred = load_pack<P, 4 * kBoxes>(boxes.pred + 4 * first);
  const C scale = *a.scale;
  const C by_reduced_loss = kPlain ? scale * *a.grad_loss.data : C(0);
  const unsigned counted = counted_boxes<kBoxes, C>(pairing, target, first);
  if (!kAllCount<Pairing> && counted != 0) {
    pred = load_pack<P, 4 * kBoxes>(boxes.pred + 4 * first);
  }

  Gradients<Box<C>> d[kBoxes];
  BOXLOSS_UNROLL
  for (int i = 0; i < kBoxes; ++i) {
    if (!(counted >> i & 1u)) continue;
    const Box<C> p = box_at<C>(pred, i);
    const Box<C> t = box_at<C>(target, i);
    if (kPlain) {
      d[i].pred = by_reduced_loss * gradient(a.formula, p, t, a.constants).pred;
    } else {
      const C by_loss = scale * a.grad_loss.at(0, first + i);
      d[i] =
          weighted_gradients(a, by_loss, p, boxes.pred_format, t, boxes.target_format, first + i);
    }
  }
  if (kPlain || a.d_pred.values.data != nullptr) {
    Pack<P, 4 * kBoxes> d_pred;
    BOXLOSS_UNROLL
    for (int i = 0; i < kBoxes; ++i) set_box_at(d_pred, i, d[i].pred);
    store_pack(a.d_pred.values.data + 4 * first, d_pred);
  }
  if (kPlain) return;
  if constexpr (!std::is_integral_v<T>) {
    if (a.d_target.values.data != nullptr) {
      Pack<T, 4 * kBoxes> d_target;
      BOXLOSS_UNROLL
      for (int i = 0; i < kBoxes; ++i) set_box_at(d_target, i, d[i].target);
      store_pack(a.d_target.values.data + 4 * first, d_target);
    }
  }
  if (a.d_weight.data != nullptr) {
    BOXLOSS_UNROLL
    for (int i = 0; i < kBoxes; ++i) a.d_weight.set(first + i, d[i].weight);
  }
}

/// Group `group` of the boxes, of which the last may be short.
template <bool kPlain, class F, class P, class T, class C, class Pairing>
BOXLOSS_HOST_DEVICE void backward_boxes(const BackwardArgs<F, P, T, C>& a,
                                        const FlatBoxes<P, T>& boxes, const Pairing& pairing,
                                        std::int64_t group) {
  constexpr int kBoxes = kBackwardGroup<P, T>;
  const std::int64_t first = group * kBoxes;
  if (first + kBoxes <= a.slots) {
    backward_group<kPlain, kBoxes>(a, boxes, pairing, first);
  } else {
    for (std::int64_t box = first; box < a.slots; ++box) {
      backward_group<kPlain, 1>(a, boxes, pairing, box);
    }
  }
}

/// These loops compute the loss only, neither L1 nor IoU.
template <class P, class T>
bool is_flat_forward(const LossProblem& p, const LossOutputs& outputs) {
  return outputs.l1 == nullptr && outputs.iou == nullptr && is_flat<P, kGroup<P, T>>(p.pred) &&
         is_flat<T, kGroup<P, T>>(p.target);
}

template <class P, class T>
bool is_flat_backward(const LossProblem& p, const GradOutputs& grads,
                      const LossGradients& gradients) {
  constexpr int kBoxes = kBackwardGroup<P, T>;
  return grads.loss.data != nullptr && grads.l1.data == nullptr && is_flat<P, kBoxes>(p.pred) &&
         is_flat<T, kBoxes>(p.target) && is_aligned<P, 4 * kBoxes>(gradients.pred) &&
         is_aligned<T, 4 * kBoxes>(gradients.target);
}

}  // namespace boxloss
