// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/view.hpp>

#include "box.hpp"
#include "host_device.hpp"

namespace boxloss {

/// A box that is turned around its centre, by an angle in radians, clockwise on the screen (x to
/// the right, y down): its width lies along (cos, sin), its height along (-sin, cos). Or the
/// derivatives with respect to these five.
template <class T>
struct RotatedBox {
  using Value = T;
  static constexpr int kNumbers = 5;

  T cx, cy, w, h, angle;
};

template <class T>
BOXLOSS_HOST_DEVICE RotatedBox<T> operator*(T factor, const RotatedBox<T>& b) {
  return {factor * b.cx, factor * b.cy, factor * b.w, factor * b.h, factor * b.angle};
}

template <class T>
BOXLOSS_HOST_DEVICE RotatedBox<T> operator+(const RotatedBox<T>& a, const RotatedBox<T>& b) {
  return {a.cx + b.cx, a.cy + b.cy, a.w + b.w, a.h + b.h, a.angle + b.angle};
}

/// The same box in numbers of another type.
template <class T, class C>
BOXLOSS_HOST_DEVICE RotatedBox<T> converted(const RotatedBox<C>& b) {
  return {T(b.cx), T(b.cy), T(b.w), T(b.h), T(b.angle)};
}

/// One pair's loss with its derivatives.
template <class T>
struct RotatedPairGradient {
  T loss;
  RotatedBox<T> pred, target;
};

/// Negative for a box with one negative side.
template <class T>
BOXLOSS_HOST_DEVICE T area(const RotatedBox<T>& b) {
  return b.w * b.h;
}

/// Five values in the given unit as a box in radians, each rounded once to T. By a division: a
/// product could be fused with the difference of two boxes' angles, which would then not be 0 where
/// they are equal.
template <class T>
BOXLOSS_HOST_DEVICE RotatedBox<T> in_radians(const RotatedBox<T>& b, AngleUnit unit) {
  if (unit == AngleUnit::kRadians) return b;
  return {b.cx, b.cy, b.w, b.h, b.angle / T(-57.295779513082321)};
}

/// A box along the axes has no angle.
template <class T>
BOXLOSS_HOST_DEVICE Box<T> in_radians(const Box<T>& b, AngleUnit) {
  return b;
}

/// Converts derivatives by a box in radians to derivatives by the unit's five values.
template <class T>
BOXLOSS_HOST_DEVICE RotatedBox<T> from_radians_gradient(const RotatedBox<T>& d, AngleUnit unit) {
  if (unit == AngleUnit::kRadians) return d;
  return {d.cx, d.cy, d.w, d.h, d.angle * T(-0.017453292519943296)};
}

}  // namespace boxloss
