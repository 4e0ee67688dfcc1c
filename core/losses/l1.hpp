// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/arithmetic.hpp"
#include "../math/box.hpp"
#include "../math/host_device.hpp"
#include "../math/rotated_box.hpp"

/// The sum of |pred - target| over a box's four values in their own format, which DETR-like
/// detectors add to a loss of the corners.
namespace boxloss {

/// -1, 0 or 1; NaN stays NaN.
template <class T>
BOXLOSS_HOST_DEVICE T sign(const T& x) {
  return select(x > T(0), T(1), select(x < T(0), T(-1), x * T(0)));
}

/// The derivatives by pred's values; those by target's are their negatives. 0 at a tie.
template <class T>
BOXLOSS_HOST_DEVICE Box<T> l1_signs(const Box<T>& p, const Box<T>& t) {
  return {sign(p.x1 - t.x1), sign(p.y1 - t.y1), sign(p.x2 - t.x2), sign(p.y2 - t.y2)};
}

/// sign takes part in derivatives: its own is 0, and so is the second one, not missing.
template <class T>
BOXLOSS_HOST_DEVICE T l1_distance(const Box<T>& p, const Box<T>& t) {
  const auto distance = [](const T& a, const T& b) { return (a - b) * sign(a - b); };
  return distance(p.x1, t.x1) + distance(p.y1, t.y1) + distance(p.x2, t.x2) + distance(p.y2, t.y2);
}

/// The same number without its derivative, at a third of the instructions.
template <class T>
BOXLOSS_HOST_DEVICE T l1_value(const Box<T>& p, const Box<T>& t) {
  return magnitude(p.x1 - t.x1) + magnitude(p.y1 - t.y1) + magnitude(p.x2 - t.x2) +
         magnitude(p.y2 - t.y2);
}

/// Of rotated boxes, over all but the angle.
template <class T>
BOXLOSS_HOST_DEVICE T l1_value(const RotatedBox<T>& p, const RotatedBox<T>& t) {
  return l1_value(Box<T>{p.cx, p.cy, p.w, p.h}, Box<T>{t.cx, t.cy, t.w, t.h});
}

}  // namespace boxloss
