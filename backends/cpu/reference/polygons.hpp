// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "math/rotated_box.hpp"

/// Areas of rotated boxes by polygons: another algorithm than core's, in long double, so that its
/// errors do not widen the bounds of those that are compared with it. Intersections by Sutherland
/// and Hodgman's clipping, hulls by Andrew's monotone chain.
namespace boxloss::reference {

using Real = long double;

struct Point {
  Real x, y;
};

using Polygon = std::vector<Point>;

/// The product of the vectors to a and to b.
inline Real cross(const Point& from, const Point& a, const Point& b) {
  return (a.x - from.x) * (b.y - from.y) - (a.y - from.y) * (b.x - from.x);
}

/// Relative to the origin, which is near: far from it, digits would be lost.
inline Polygon corners_of(const RotatedBox<Real>& b, const Point& origin) {
  const Real cos = std::cos(b.angle), sin = std::sin(b.angle);
  Polygon corners;
  for (const Point& at : {Point{1, 1}, Point{-1, 1}, Point{-1, -1}, Point{1, -1}}) {
    const Real along_w = at.x * b.w / 2, along_h = at.y * b.h / 2;
    corners.push_back({b.cx - origin.x + along_w * cos - along_h * sin,
                       b.cy - origin.y + along_w * sin + along_h * cos});
  }
  return corners;
}

inline Real area_of(const Polygon& p) {
  Real twice = 0;
  for (std::size_t i = 2; i < p.size(); ++i) twice += cross(p[0], p[i - 1], p[i]);
  return std::fabs(twice) / 2;
}

/// What of the polygon lies to the left of the line from a to b.
inline Polygon clipped(const Polygon& p, const Point& a, const Point& b) {
  Polygon rest;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const Point &from = p[i], &to = p[(i + 1) % p.size()];
    const Real of_from = cross(a, b, from), of_to = cross(a, b, to);
    if (of_from >= 0) rest.push_back(from);
    if ((of_from >= 0) == (of_to >= 0)) continue;
    const Real share = of_from / (of_from - of_to);
    rest.push_back({from.x + share * (to.x - from.x), from.y + share * (to.y - from.y)});
  }
  return rest;
}

inline Real intersection_of(const RotatedBox<Real>& p, const RotatedBox<Real>& t) {
  const Point origin = {t.cx, t.cy};
  Polygon rest = corners_of(p, origin);
  const Polygon by = corners_of(t, origin);
  for (std::size_t i = 0; i < 4; ++i) rest = clipped(rest, by[i], by[(i + 1) % 4]);
  return area_of(rest);
}

inline Real hull_of(const RotatedBox<Real>& p, const RotatedBox<Real>& t) {
  const Point origin = {t.cx, t.cy};
  Polygon points = corners_of(p, origin);
  const Polygon more = corners_of(t, origin);
  points.insert(points.end(), more.begin(), more.end());
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.x < b.x || (a.x == b.x && a.y < b.y); });
  Polygon chain;
  const auto add = [&](const Point& point, std::size_t kept) {
    while (chain.size() >= kept + 2 && cross(chain[chain.size() - 2], chain.back(), point) <= 0) {
      chain.pop_back();
    }
    chain.push_back(point);
  };
  for (const Point& point : points) add(point, 0);
  const std::size_t lower = chain.size() - 1;
  for (auto point = points.rbegin(); point != points.rend(); ++point) add(*point, lower);
  return area_of(chain);
}

}  // namespace boxloss::reference
