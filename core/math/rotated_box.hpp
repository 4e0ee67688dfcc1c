// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host_device.hpp"

namespace boxloss {

/// A box that is turned around its centre, by an angle in radians, clockwise on the screen (x to
/// the right, y down): its width lies along (cos, sin), its height along (-sin, cos). Or the
/// derivatives with respect to these five.
template <class T>
struct RotatedBox {
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

}  // namespace boxloss
