// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/max_iou_match.hpp>
#include <cstdint>
#include <limits>

#include "../dtypes/elements.hpp"
#include "../losses/rotated/overlap.hpp"
#include "../math/box.hpp"
#include "../math/unfused.hpp"
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

template <class C>
BOXLOSS_HOST_DEVICE Box<C> everywhere() {
  return {-kInfinite<C>, -kInfinite<C>, kInfinite<C>, kInfinite<C>};
}

/// A box as the IoUs of many pairs need it.
template <class B>
struct MatchBox;

template <class C>
struct MatchBox<Box<C>> {
  Box<C> box;
  C area;
};

template <class C>
struct MatchBox<RotatedBox<C>> {
  RotatedBox<C> box;
  Box<C> extent;  ///< bounds along the axes; everywhere() if the box is not finite
};

template <class C>
BOXLOSS_HOST_DEVICE MatchBox<Box<C>> match_box(const Box<C>& box) {
  return {box, product(box.x2 - box.x1, box.y2 - box.y1)};
}

/// Half of what a rotated box covers of an axis.
template <class C>
BOXLOSS_HOST_DEVICE C half_extent(C along_w, C along_h) {
  return C(0.5) * (magnitude(along_w) + magnitude(along_h));
}

template <class C>
BOXLOSS_HOST_DEVICE MatchBox<RotatedBox<C>> match_box(const RotatedBox<C>& box) {
  const RotatedBox<Unfused<C>> b = converted<Unfused<C>>(box);
  const SinCos<Unfused<C>> turn = sin_cos(b.angle);
  const C x = plain(half_extent(b.w * turn.cos, b.h * turn.sin));
  const C y = plain(half_extent(b.w * turn.sin, b.h * turn.cos));
  const Box<C> extent = {box.cx - x, box.cy - y, box.cx + x, box.cy + y};
  // An infinite number leaves a difference that is NaN, or an infinite one.
  const C all = (extent.x2 - extent.x1) + (extent.y2 - extent.y1);
  const bool is_finite = both(all >= C(0), all <= kLargest<C>);
  return {box, select(is_finite, extent, everywhere<C>())};
}

/// The operations of torchvision's box_iou, in torch's order, so that the bits are the same. A NaN
/// in a box makes its area NaN, so it does not matter that min and max may drop it.
template <class C>
BOXLOSS_HOST_DEVICE C iou_of(const MatchBox<Box<C>>& a, const MatchBox<Box<C>>& b) {
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
BOXLOSS_HOST_DEVICE bool has_finite_area(const MatchBox<Box<C>>& b) {
  return both(b.area >= C(0), b.area <= kLargest<C>);
}

/// Whether an anchor may lie in a block with bounds: its area is finite, and more than 0. A rotated
/// one may always.
template <class C>
BOXLOSS_HOST_DEVICE bool has_bounds(const MatchBox<Box<C>>& b) {
  return both(has_finite_area(b), b.area > C(0));
}
template <class C>
BOXLOSS_HOST_DEVICE bool has_bounds(const MatchBox<RotatedBox<C>>&) {
  return true;
}

/// The region outside of which anchors that have bounds have the IoU +0 with a box. It is the box
/// itself, if its area is finite; otherwise it is everywhere, since any IoU may be NaN or -0.
template <class C>
BOXLOSS_HOST_DEVICE Box<C> extent_of(const MatchBox<Box<C>>& b) {
  return has_finite_area(b) ? b.box : everywhere<C>();
}
template <class C>
BOXLOSS_HOST_DEVICE Box<C> extent_of(const MatchBox<RotatedBox<C>>& b) {
  return b.extent;
}

/// Whether a box's extent meets the bounds of some anchors. If not, all their IoUs are +0. The
/// bounds are everywhere() if one of the anchors has none.
template <class C>
BOXLOSS_HOST_DEVICE bool can_overlap(const Box<C>& extent, const Box<C>& bounds) {
  return both(both(extent.x1 < bounds.x2, bounds.x1 < extent.x2),
              both(extent.y1 < bounds.y2, bounds.y1 < extent.y2));
}

/// Whether the IoU may be other than 0, of either sign.
template <class C>
BOXLOSS_HOST_DEVICE bool may_overlap(const MatchBox<Box<C>>& a, const MatchBox<Box<C>>& b) {
  const C w = smaller(a.box.x2, b.box.x2) - larger(a.box.x1, b.box.x1);
  const C h = smaller(a.box.y2, b.box.y2) - larger(a.box.y1, b.box.y1);
  const C areas = magnitude(a.area + b.area);
  return both(w > C(0), h > C(0)) || !both(areas > C(0), areas <= kLargest<C>);
}
template <class C>
BOXLOSS_HOST_DEVICE bool may_overlap(const MatchBox<RotatedBox<C>>& a,
                                     const MatchBox<RotatedBox<C>>& b) {
  return can_overlap(a.extent, b.extent);
}

/// The IoU of rotated boxes, by the formula of the loss: in float32 within 3e-5 of the exact one,
/// of boxes up to a thousand times as long as wide. Boxes whose extents are apart have none,
/// whatever rounding leaves of it; boxes without area have 0.
template <class C>
BOXLOSS_HOST_DEVICE C iou_of(const MatchBox<RotatedBox<C>>& box,
                             const MatchBox<RotatedBox<C>>& anchor) {
  using U = Unfused<C>;
  const Eps<U> eps = {U(0), least_normal(U(0)), U(0)};
  const rotated::Overlap<U> overlap =
      rotated::overlap(converted<U>(anchor.box), converted<U>(box.box), eps);
  const C iou = at_least(plain(rotated::iou_of(overlap)), C(0));
  return select(can_overlap(box.extent, anchor.extent), iou, C(0));
}

template <class C>
struct MaxIouArgs {
  Boxes<Any> anchors, target;
  AngleUnit angle_unit;  ///< of rotated boxes
  Indices offsets;
  std::int64_t images, anchor_count, boxes;
  C high, low, min_pos_iou;
  LowQuality low_quality;
  IndexOutputs target_index;
  C* iou;  ///< null: not wanted
};

template <class B>
BOXLOSS_HOST_DEVICE MatchBox<B> match_box_at(const Boxes<Any>& boxes, AngleUnit unit,
                                             std::int64_t image, std::int64_t slot) {
  return match_box(in_radians(boxes.template get<B>(image, slot), unit));
}

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
