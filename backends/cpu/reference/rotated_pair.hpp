// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "cpu/reference/polygons.hpp"
#include "dtypes/elements.hpp"
#include "losses/rotated/formulas.hpp"

/// Rotated boxes in double. Losses by area are computed from polygons, the others by core's
/// formulas, which the tests of core compare with others.
namespace boxloss::reference {

/// In radians, which are rounded to the compute dtype C, as every implementation rounds them.
template <class C>
RotatedBox<double> box_in_radians(const BoxView& view, std::int64_t image, std::int64_t slot,
                                  AngleUnit unit) {
  const Elements<Any> values{view.data, view.dtype};
  const auto raw = values.get_box<RotatedBox<C>>(
      image * view.image_stride + slot * view.slot_stride, view.coordinate_stride);
  const RotatedBox<C> b = in_radians(raw, unit);
  return {b.cx, b.cy, b.w, b.h, b.angle};
}

/// Of other boxes, with NaN or without an area, only the formula says what they have.
inline bool is_polygon(const RotatedBox<double>& b) {
  bool is_finite = true;
  for (const double number : {b.cx, b.cy, b.w, b.h, b.angle}) {
    is_finite = is_finite && std::isfinite(number);
  }
  return is_finite && b.w > 0 && b.h > 0;
}

struct RotatedPair {
  RotatedBox<double> pred, target;

  bool are_polygons() const { return is_polygon(pred) && is_polygon(target); }
};

struct Areas {
  double inter, uni;  ///< the union with eps
};

inline Areas areas_of(const RotatedPair& boxes, const Constants<double>& c) {
  const double inter = intersection_of(boxes.pred, boxes.target);
  const double all = area(boxes.pred) + area(boxes.target) - inter;
  return {inter, std::max(all + c.added, c.floor)};
}

inline double rotated_loss(RotatedLoss loss, const RotatedPair& boxes,
                           const Constants<double>& constants) {
  if (!kLossesByArea.contains(loss) || !boxes.are_polygons()) {
    return with_formula(
        loss, [&](auto formula) { return formula.loss(boxes.pred, boxes.target, constants); });
  }
  const auto [inter, uni] = areas_of(boxes, constants);
  if (loss == RotatedLoss::kIou) return 1 - inter / uni;
  const double hull =
      std::max(hull_of(boxes.pred, boxes.target) + constants.added, constants.floor);
  return 1 - inter / uni + (hull - uni) / hull;
}

}  // namespace boxloss::reference
