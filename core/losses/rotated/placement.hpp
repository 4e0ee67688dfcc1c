// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../math/rotated_box.hpp"
#include "../../math/sin_cos.hpp"

/// Where one box lies in the frame of the other, along whose sides the axes are: the formulas of
/// rotated boxes are functions of this and of the four sides.
namespace boxloss::rotated {

/// The other box' centre, and how it is turned, in the frame of the box that `own` is of.
template <class T>
struct Placement {
  T x, y;
  SinCos<T> turn, own;
};

/// With the own box' direction, and how the other is turned. Centres are subtracted first, so that
/// their common part costs no digits.
template <class T>
BOXLOSS_HOST_DEVICE Placement<T> place(const RotatedBox<T>& own, const RotatedBox<T>& other,
                                       const SinCos<T>& direction, const SinCos<T>& turn) {
  const T x = other.cx - own.cx, y = other.cy - own.cy;
  return {direction.cos * x + direction.sin * y, direction.cos * y - direction.sin * x, turn,
          direction};
}

/// Angles are subtracted first, too.
template <class T>
BOXLOSS_HOST_DEVICE Placement<T> place(const RotatedBox<T>& own, const RotatedBox<T>& other) {
  return place(own, other, sin_cos(own.angle), sin_cos(other.angle - own.angle));
}

/// Derivatives by the sides, and by where the other box lies in the own one's frame.
template <class T>
struct PlacedDerivatives {
  T own_w, own_h, other_w, other_h;
  T x, y, angle;
};

template <class T>
BOXLOSS_HOST_DEVICE PlacedDerivatives<T> operator*(T factor, const PlacedDerivatives<T>& d) {
  return {factor * d.own_w, factor * d.own_h, factor * d.other_w, factor * d.other_h,
          factor * d.x,     factor * d.y,     factor * d.angle};
}

template <class T>
BOXLOSS_HOST_DEVICE PlacedDerivatives<T> operator+(const PlacedDerivatives<T>& a,
                                                   const PlacedDerivatives<T>& b) {
  return {a.own_w + b.own_w, a.own_h + b.own_h, a.other_w + b.other_w, a.other_h + b.other_h,
          a.x + b.x,         a.y + b.y,         a.angle + b.angle};
}

/// To derivatives by the two boxes' own numbers. Nothing changes where both are moved, or both are
/// turned around the own box' centre; so its derivatives follow from the other's.
template <class T>
BOXLOSS_HOST_DEVICE void to_boxes(const Placement<T>& at, const PlacedDerivatives<T>& d,
                                  RotatedBox<T>& own, RotatedBox<T>& other) {
  const T x = at.own.cos * d.x - at.own.sin * d.y, y = at.own.sin * d.x + at.own.cos * d.y;
  other = {x, y, d.other_w, d.other_h, d.angle};
  own = {-x, -y, d.own_w, d.own_h, (at.y * d.x - at.x * d.y) - d.angle};
}

}  // namespace boxloss::rotated
