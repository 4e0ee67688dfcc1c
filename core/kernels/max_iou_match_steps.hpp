// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/bits.hpp"
#include "max_iou_match.hpp"

/// Max-IoU matching. Low quality takes two passes, of the same arithmetic: the first finds each
/// box's best IoU, by atomic maxima of integers, which are the same every time; the second compares
/// with it.
namespace boxloss {

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
BOXLOSS_HOST_DEVICE Bits<C> bits_of(C iou) {
  if (iou > C(0)) return bit_cast<Bits<C>>(iou);
  return iou == iou ? Bits<C>(0) : ~Bits<C>(0);
}

/// What low quality needs of each box: its best IoU and, to force it, the first anchor that has it.
template <class C>
struct BestOfBoxes {
  Bits<C>* ious;
  unsigned* anchors;

  BOXLOSS_HOST_DEVICE C iou(std::int64_t box) const { return bit_cast<C>(ious[box]); }
  /// If the best IoU is 0, every anchor has it, so the first one is anchor 0.
  BOXLOSS_HOST_DEVICE unsigned anchor(std::int64_t box) const {
    return ious[box] == 0 ? 0 : anchors[box];
  }
};

/// In a piece of the workspace, which is set by fill(pointer, byte, bytes). The best IoUs are the
/// first of `lists` of 0.
template <class C, class Fill>
BestOfBoxes<C> best_of_boxes(void* workspace, const MaxIouArgs<C>& a, std::int64_t lists,
                             const Fill& fill) {
  auto* const ious = static_cast<Bits<C>*>(workspace);
  const BestOfBoxes<C> best = {ious, reinterpret_cast<unsigned*>(ious + lists * a.boxes)};
  fill(best.ious, 0, static_cast<std::size_t>(lists * a.boxes) * sizeof(Bits<C>));
  if (a.low_quality == LowQuality::kForce) {
    fill(best.anchors, 0xff, static_cast<std::size_t>(a.boxes) * sizeof(unsigned));
  }
  return best;
}

/// The boxes of an image, if offsets are right.
struct OwnBoxes {
  std::int64_t begin, end;
};

template <class C>
BOXLOSS_HOST_DEVICE OwnBoxes own_boxes(const MaxIouArgs<C>& a, std::int64_t image, bool are_right) {
  if (!are_right) return {0, 0};
  return {a.offsets[image], a.offsets[image + 1]};
}

/// Outside of which the anchor has the IoU +0 with a box.
template <class B>
BOXLOSS_HOST_DEVICE auto bounds_of(const MatchBox<B>& anchor) {
  return has_bounds(anchor) ? extent_of(anchor) : everywhere<typename B::Value>();
}

/// Gives each box of an image its anchor, unless a later box gets the same one. Called by each of
/// some threads.
template <class C>
BOXLOSS_HOST_DEVICE void force_boxes(const MaxIouArgs<C>& a, const BestOfBoxes<C>& best,
                                     std::int64_t image, const OwnBoxes& own, int thread,
                                     int threads) {
  BOXLOSS_NO_UNROLL
  for (std::int64_t t = own.begin + thread; t < own.end; t += threads) {
    if (!takes_low_quality(a, best.iou(t))) continue;
    const unsigned anchor = best.anchor(t);
    bool is_last = true;
    BOXLOSS_NO_UNROLL
    for (std::int64_t u = t + 1; u < own.end && is_last; ++u) {
      is_last = best.anchor(u) != anchor || !takes_low_quality(a, best.iou(u));
    }
    if (is_last) a.target_index.set(image * a.anchor_count + anchor, t);
  }
}

}  // namespace boxloss
