// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/max_iou_match.hpp>
#include <cstdint>
#include <limits>

#include "../dtypes/elements.hpp"
#include "../math/arithmetic.hpp"
#include "../math/box.hpp"
#include "../pairings/indices.hpp"

/// Max-IoU matching, for every kind of loop: the IoU of a pair, which pairs need none, and what an
/// anchor gets.
namespace boxloss {

template <class C>
constexpr C kLargest = std::numeric_limits<C>::max();
template <class C>
constexpr C kInfinite = std::numeric_limits<C>::infinity();
template <class C>
constexpr C kNotANumber = std::numeric_limits<C>::quiet_NaN();

/// a * b, rounded by itself, never fused with a subtraction that follows. On the host, the files
/// that include this are compiled without contraction.
template <class C>
BOXLOSS_HOST_DEVICE C product(C a, C b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(C) == sizeof(float)) {
    return __fmul_rn(a, b);
  } else {
    return __dmul_rn(a, b);
  }
#else
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
  return a * b;
#endif
}

template <class C>
struct MatchBox {
  Box<C> box;
  C area;
};

template <class C>
BOXLOSS_HOST_DEVICE MatchBox<C> match_box(const Box<C>& box) {
  return {box, product(box.x2 - box.x1, box.y2 - box.y1)};
}

/// The operations of torchvision's box_iou, in torch's order, so that the bits are the same. A NaN
/// in a box makes its area NaN, so it does not matter that min and max may drop it.
template <class C>
BOXLOSS_HOST_DEVICE C iou_of(const MatchBox<C>& a, const MatchBox<C>& b) {
  const C w = at_least(smaller(a.box.x2, b.box.x2) - larger(a.box.x1, b.box.x1), C(0));
  const C h = at_least(smaller(a.box.y2, b.box.y2) - larger(a.box.y1, b.box.y1), C(0));
  const C intersection = product(w, h);
  return intersection / (a.area + b.area - intersection);
}

/// Whether `iou` replaces the best one so far. Of equal ones the first is kept; NaN is better than
/// any number.
template <class C>
BOXLOSS_HOST_DEVICE bool is_better(C iou, C best) {
  return both(!(iou <= best), best == best);
}

/// Whether the area is finite and not negative. The corners are then finite, too.
template <class C>
BOXLOSS_HOST_DEVICE bool has_finite_area(const MatchBox<C>& b) {
  return both(b.area >= C(0), b.area <= kLargest<C>);
}

/// Whether an anchor may lie in a block with bounds: its area is finite, and more than 0.
template <class C>
BOXLOSS_HOST_DEVICE bool has_bounds(const MatchBox<C>& b) {
  return both(has_finite_area(b), b.area > C(0));
}

template <class C>
BOXLOSS_HOST_DEVICE Box<C> everywhere() {
  return {-kInfinite<C>, -kInfinite<C>, kInfinite<C>, kInfinite<C>};
}

/// The region outside of which anchors that have bounds have the IoU +0 with a box. It is the box
/// itself, if its area is finite; otherwise it is everywhere, since any IoU may be NaN or -0.
template <class C>
BOXLOSS_HOST_DEVICE Box<C> extent_of(const MatchBox<C>& b) {
  return has_finite_area(b) ? b.box : everywhere<C>();
}

/// Whether a box's extent meets the bounds of some anchors. If not, all their IoUs are +0. The
/// bounds are everywhere() if one of the anchors has none.
template <class C>
BOXLOSS_HOST_DEVICE bool can_overlap(const Box<C>& extent, const Box<C>& bounds) {
  return both(both(extent.x1 < bounds.x2, bounds.x1 < extent.x2),
              both(extent.y1 < bounds.y2, bounds.y1 < extent.y2));
}

template <class C>
struct MaxIouArgs {
  Boxes<Any> anchors, target;
  Indices offsets;
  std::int64_t images, anchor_count, boxes;
  C high, low, min_pos_iou;
  LowQuality low_quality;
  IndexOutputs target_index;
  C* iou;  ///< null: not wanted
};

/// What an anchor gets, whose best IoU is with the box of that row.
template <class C>
BOXLOSS_HOST_DEVICE std::int64_t match_of(const MaxIouArgs<C>& a, C iou, std::int64_t row) {
  return iou < a.low ? kNoBox : iou < a.high ? kIgnored : row;
}

/// Whether low_quality applies to a box with this best IoU. It does not if the IoU is NaN.
template <class C>
BOXLOSS_HOST_DEVICE bool takes_low_quality(const MaxIouArgs<C>& a, C best) {
  return best >= a.min_pos_iou;
}

template <class C>
BOXLOSS_HOST_DEVICE void write_match(const MaxIouArgs<C>& a, std::int64_t image,
                                     std::int64_t anchor, std::int64_t match, C iou) {
  const std::int64_t at = image * a.anchor_count + anchor;
  a.target_index.set(at, match);
  if (a.iou != nullptr) a.iou[at] = iou;
}

}  // namespace boxloss
