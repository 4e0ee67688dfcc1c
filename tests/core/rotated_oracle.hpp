// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "cpu/reference/polygons.hpp"

/// The losses of rotated boxes by other algorithms than core's, in long double: areas by the
/// reference's polygons, Gaussians by their covariances as matrices.
namespace boxloss::rotated_oracle {

using reference::Real;
using Box = RotatedBox<Real>;

template <class T>
Box exactly(const RotatedBox<T>& b) {
  return {b.cx, b.cy, b.w, b.h, b.angle};
}

inline Real iou(const Box& p, const Box& t) {
  const Real inter = reference::intersection_of(p, t);
  return inter / (p.w * p.h + t.w * t.h - inter);
}

inline Real giou(const Box& p, const Box& t) {
  const Real inter = reference::intersection_of(p, t), all = reference::hull_of(p, t);
  const Real uni = p.w * p.h + t.w * t.h - inter;
  return inter / uni - (all - uni) / all;
}

/// A symmetric matrix.
struct Matrix {
  Real xx, xy, yy;
  Real det() const { return xx * yy - xy * xy; }
  Real trace() const { return xx + yy; }
  /// d' M^-1 d
  Real inverse_form(Real x, Real y) const {
    return (yy * x * x - 2 * xy * x * y + xx * y * y) / det();
  }
};

inline Matrix operator+(const Matrix& a, const Matrix& b) {
  return {a.xx + b.xx, a.xy + b.xy, a.yy + b.yy};
}

/// The trace of the product.
inline Real trace_of(const Matrix& a, const Matrix& b) {
  return a.xx * b.xx + 2 * a.xy * b.xy + a.yy * b.yy;
}

/// Variances are a side's square over `divisor`, plus the floor.
inline Matrix covariance(const Box& b, Real divisor, Real floor) {
  const Real c = std::cos(b.angle), s = std::sin(b.angle);
  const Real u = b.w * b.w / divisor + floor, v = b.h * b.h / divisor + floor;
  return {u * c * c + v * s * s, (u - v) * c * s, u * s * s + v * c * c};
}

inline Real probiou_loss(const Box& p, const Box& t, Real floor) {
  const Matrix a = covariance(p, 12, floor), b = covariance(t, 12, floor), sum = a + b;
  const Real distance = sum.inverse_form(p.cx - t.cx, p.cy - t.cy) / 4 +
                        std::log(sum.det() / (4 * std::sqrt(a.det() * b.det()))) / 2;
  return std::sqrt(std::fmax(-std::expm1(-distance), Real(0)));
}

/// mmrotate's, of a squared distance.
inline Real distance_loss(Real square, Real tau) {
  return 1 - 1 / (tau + std::log1p(std::sqrt(std::fmax(square, Real(0)))));
}

inline Real kld_loss(const Box& p, const Box& t, Real tau, Real floor) {
  const Matrix a = covariance(p, 4, floor), b = covariance(t, 4, floor);
  const Matrix inverse = {a.yy / a.det(), -a.xy / a.det(), a.xx / a.det()};
  const Real divergence = a.inverse_form(p.cx - t.cx, p.cy - t.cy) / 2 + trace_of(inverse, b) / 2 +
                          std::log(a.det() / b.det()) / 2 - 1;
  return distance_loss(divergence, tau);
}

inline Real gwd_loss(const Box& p, const Box& t, Real tau, Real floor) {
  const Matrix a = covariance(p, 4, floor), b = covariance(t, 4, floor);
  const Real dets = std::sqrt(a.det() * b.det());
  const Real square = (p.cx - t.cx) * (p.cx - t.cx) + (p.cy - t.cy) * (p.cy - t.cy) + a.trace() +
                      b.trace() - 2 * std::sqrt(trace_of(a, b) + 2 * dets);
  return distance_loss(square / (4 * std::sqrt(dets)), tau);
}

inline Real kfiou_loss(const Box& p, const Box& t, Real floor) {
  const Matrix a = covariance(p, 4, floor), b = covariance(t, 4, floor);
  const Real product = 4 * std::sqrt(a.det() * b.det() / (a + b).det());
  return 1 - product / (4 * std::sqrt(a.det()) + 4 * std::sqrt(b.det()) - product);
}

}  // namespace boxloss::rotated_oracle
