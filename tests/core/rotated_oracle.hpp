// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "math/rotated_box.hpp"

/// The losses of rotated boxes by other algorithms than core's, in long double: areas by polygons
/// (Sutherland and Hodgman's clipping, Andrew's monotone chain, the shoelace formula), Gaussians by
/// their covariances as matrices.
namespace boxloss::rotated_oracle {

using Real = long double;
using Box = RotatedBox<Real>;

template <class T>
Box exactly(const RotatedBox<T>& b) {
  return {b.cx, b.cy, b.w, b.h, b.angle};
}

struct Point {
  Real x, y;
};

using Polygon = std::vector<Point>;

inline Real cross(const Point& o, const Point& a, const Point& b) {
  return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

/// Relative to the origin, which is near: far from it, digits would be lost.
inline Polygon corners(const Box& b, const Point& origin) {
  const Real ux = b.w / 2 * std::cos(b.angle), uy = b.w / 2 * std::sin(b.angle);
  const Real vx = -b.h / 2 * std::sin(b.angle), vy = b.h / 2 * std::cos(b.angle);
  const Real x = b.cx - origin.x, y = b.cy - origin.y;
  return {{x + ux + vx, y + uy + vy},
          {x - ux + vx, y - uy + vy},
          {x - ux - vx, y - uy - vy},
          {x + ux - vx, y + uy - vy}};
}

inline Real area(const Polygon& p) {
  Real twice = 0;
  for (std::size_t i = 2; i < p.size(); ++i) twice += cross(p[0], p[i - 1], p[i]);
  return std::fabs(twice) / 2;
}

/// What of the polygon lies to the left of the line from a to b.
inline Polygon clipped(const Polygon& p, const Point& a, const Point& b) {
  Polygon result;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const Point &from = p[i], &to = p[(i + 1) % p.size()];
    const Real of_from = cross(a, b, from), of_to = cross(a, b, to);
    if (of_from >= 0) result.push_back(from);
    if ((of_from >= 0) == (of_to >= 0)) continue;
    const Real share = of_from / (of_from - of_to);
    result.push_back({from.x + share * (to.x - from.x), from.y + share * (to.y - from.y)});
  }
  return result;
}

inline Real intersection(const Box& p, const Box& t) {
  const Point origin = {t.cx, t.cy};
  Polygon polygon = corners(p, origin);
  const Polygon of_target = corners(t, origin);
  for (std::size_t i = 0; i < 4; ++i) {
    polygon = clipped(polygon, of_target[i], of_target[(i + 1) % 4]);
  }
  return area(polygon);
}

inline Real hull(const Box& p, const Box& t) {
  const Point origin = {t.cx, t.cy};
  Polygon points = corners(p, origin);
  const Polygon more = corners(t, origin);
  points.insert(points.end(), more.begin(), more.end());
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.x < b.x || (a.x == b.x && a.y < b.y); });
  Polygon chain;
  const auto add = [&](const Point& point, std::size_t least) {
    while (chain.size() >= least + 2 && cross(chain[chain.size() - 2], chain.back(), point) <= 0) {
      chain.pop_back();
    }
    chain.push_back(point);
  };
  for (const Point& point : points) add(point, 0);
  const std::size_t lower = chain.size() - 1;
  for (auto point = points.rbegin(); point != points.rend(); ++point) add(*point, lower);
  return area(chain);
}

inline Real iou(const Box& p, const Box& t) {
  const Real inter = intersection(p, t);
  return inter / (p.w * p.h + t.w * t.h - inter);
}

inline Real giou(const Box& p, const Box& t) {
  const Real inter = intersection(p, t), all = hull(p, t);
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
