// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/view.hpp>

#include "host_device.hpp"

namespace boxloss {

/// Two corners, or the derivatives with respect to them; or, before conversion, the four values of
/// another format in their order.
template <class T>
struct Box {
  using Value = T;
  static constexpr int kNumbers = 4;

  T x1, y1, x2, y2;
};

template <class T>
BOXLOSS_HOST_DEVICE Box<T> operator*(T factor, const Box<T>& b) {
  return {factor * b.x1, factor * b.y1, factor * b.x2, factor * b.y2};
}

template <class T>
BOXLOSS_HOST_DEVICE Box<T> operator+(const Box<T>& a, const Box<T>& b) {
  return {a.x1 + b.x1, a.y1 + b.y1, a.x2 + b.x2, a.y2 + b.y2};
}

/// One pair's loss with its derivatives.
template <class T>
struct PairGradient {
  T loss;
  Box<T> pred, target;
};

/// The area, negative for a box inverted in one axis.
template <class T>
BOXLOSS_HOST_DEVICE T area(const Box<T>& b) {
  return (b.x2 - b.x1) * (b.y2 - b.y1);
}

/// Four values of the given format as corners, each rounded once to T.
template <class T>
BOXLOSS_HOST_DEVICE Box<T> to_corners(const Box<T>& v, BoxFormat format) {
  if (format == BoxFormat::kXyxy) return v;
  if (format == BoxFormat::kXywh) return {v.x1, v.y1, v.x1 + v.x2, v.y1 + v.y2};
  const T half_w = T(0.5) * v.x2;
  const T half_h = T(0.5) * v.y2;
  return {v.x1 - half_w, v.y1 - half_h, v.x1 + half_w, v.y1 + half_h};
}

/// Converts derivatives by corners to derivatives by the format's four values: to_corners'
/// Jacobian, transposed.
template <class T>
BOXLOSS_HOST_DEVICE Box<T> from_corners_gradient(const Box<T>& d, BoxFormat format) {
  if (format == BoxFormat::kXyxy) return d;
  if (format == BoxFormat::kXywh) return {d.x1 + d.x2, d.y1 + d.y2, d.x2, d.y2};
  return {d.x1 + d.x2, d.y1 + d.y2, T(0.5) * (d.x2 - d.x1), T(0.5) * (d.y2 - d.y1)};
}

}  // namespace boxloss
