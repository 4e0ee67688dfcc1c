// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "cpu/reference/polygons.hpp"
#include "dtypes/elements.hpp"
#include "losses/rotated/formulas.hpp"

/// Pairs of rotated boxes. Losses by area are computed from polygons, the others by core's
/// formulas in double, which the tests of core compare with others.
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

struct RotatedPair {
  RotatedBox<double> pred, target;
};

inline bool is_polygon(const RotatedBox<double>& b) {
  bool is_finite = true;
  for (const double number : {b.cx, b.cy, b.w, b.h, b.angle}) {
    is_finite = is_finite && std::isfinite(number);
  }
  return is_finite && b.w > 0 && b.h > 0;
}

/// Of others, with NaN, without an area, or so thin or far apart that long double loses their
/// areas, only the formula says what they have.
inline bool are_polygons(const RotatedPair& boxes) {
  const auto& [a, b] = boxes;
  // Not std::hypot: glibc 2.35 has a new version of it, and the wheel runs on older ones.
  const auto length = [](double x, double y) { return std::sqrt(x * x + y * y); };
  const double reach = length(a.cx - b.cx, a.cy - b.cy) + length(a.w, a.h) + length(b.w, b.h);
  return is_polygon(a) && is_polygon(b) && reach * reach <= 1e9 * std::max(area(a), area(b));
}

inline RotatedBox<Real> widened(const RotatedBox<double>& b) {
  return {b.cx, b.cy, b.w, b.h, b.angle};
}

inline Real guarded(Real area, const Constants<double>& c) {
  return std::max(area + c.added, static_cast<Real>(c.floor));
}

struct Areas {
  Real inter, uni;  ///< the union with eps
};

inline Areas areas_of(const RotatedPair& boxes, const Constants<double>& c) {
  const RotatedBox<Real> pred = widened(boxes.pred), target = widened(boxes.target);
  const Real inter = intersection_of(pred, target);
  return {inter, guarded(area(pred) + area(target) - inter, c)};
}

inline double rotated_loss(RotatedLoss loss, const RotatedPair& boxes,
                           const Constants<double>& constants) {
  if (!kLossesByArea.contains(loss) || !are_polygons(boxes)) {
    return with_formula(
        loss, [&](auto formula) { return formula.loss(boxes.pred, boxes.target, constants); });
  }
  const auto [inter, uni] = areas_of(boxes, constants);
  const Real iou_loss = 1 - inter / uni;
  if (loss == RotatedLoss::kIou) return static_cast<double>(iou_loss);
  const Real hull = guarded(hull_of(widened(boxes.pred), widened(boxes.target)), constants);
  return static_cast<double>(iou_loss + (hull - uni) / hull);
}

}  // namespace boxloss::reference
