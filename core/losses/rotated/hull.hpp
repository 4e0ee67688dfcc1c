// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../math/arithmetic.hpp"
#include "../ties.hpp"
#include "intersection.hpp"

/// The area of the convex hull of two rotated boxes. A hull's support in each direction, how far it
/// reaches there, is the larger of the boxes'. Summed over the hull's border, and that sum taken
/// apart by the boxes' edges,
///   area = pred's area + 1/2 sum over all eight edges of length * max(support_t - support_p, 0),
/// with the supports in the direction of the edge's outer normal. All terms are positive, and
/// nothing is sorted: between the normals of neighbouring edges, less than half a turn apart, the
/// two supports cross at most once.
namespace boxloss::rotated {

/// By how much the target reaches further than pred, forwards and backwards along one axis.
template <class T>
struct Excess {
  T forwards, backwards;  ///< not clamped
  T sum;                  ///< clamped
};

/// Half extents along an axis, and pred's offset along it.
template <class T>
BOXLOSS_HOST_DEVICE Excess<T> excess(const T& target, const T& pred, const T& offset) {
  const T forwards = (target - pred) - offset, backwards = (target - pred) + offset;
  return {forwards, backwards, larger(forwards, T(0)) + larger(backwards, T(0))};
}

/// Along the target's axes, and along pred's.
template <class T>
struct Hull {
  T cos, sin;  ///< magnitudes
  T u, v;      ///< pred's offset along its own axes
  Excess<T> by_x, by_y, by_u, by_v;
  T area;
  T pred_turned, target_turned;  ///< more of the derivatives by the angles, see turned_at_ties
};

/// `value` where x is 0, else 0.
template <class T>
BOXLOSS_HOST_DEVICE T at_zero(const T& x, const T& value) {
  return select(x < T(0), T(0), select(x > T(0), T(0), value));
}

/// What a tie lacks where boxes are parallel. There an excess has one slope by the angle to each
/// side, s + k and s - k, where k is the kink of a support. At a tie the area's are those above 0
/// of the one and below 0 of the other: their mean is (s + clamp(s, |k|)) / 2 for k > 0, as by
/// pred's angle along pred's axes, and (s - clamp(s, |k|)) / 2 for k < 0, as by the target's along
/// its own. The clamps' halves give s / 2 alone.
template <class T>
BOXLOSS_HOST_DEVICE void turned_at_ties(const RotatedBox<T>& p, const Placement<T>& at,
                                        const Halves<T>& box, Hull<T>& hull) {
  const T half_w = T(0.5) * p.w, half_h = T(0.5) * p.h;
  const T half = at_zero(at.turn.sin, T(0.5) * hull.cos);  // where they are not parallel, 0
  const T x = at_zero(hull.by_x.forwards, half) - at_zero(hull.by_x.backwards, half);
  const T y = at_zero(hull.by_y.forwards, half) - at_zero(hull.by_y.backwards, half);
  hull.pred_turned = y * half_w * clamp(box.x, box.a) - x * half_h * clamp(box.y, box.b);
  hull.target_turned = x * box.b * clamp(box.y, half_h) - y * box.a * clamp(box.x, half_w);
}

template <class T>
BOXLOSS_HOST_DEVICE Hull<T> hull(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                 const Placement<T>& at, const Halves<T>& box) {
  Hull<T> hull;
  hull.cos = magnitude(at.turn.cos);
  hull.sin = magnitude(at.turn.sin);
  const T half_w = T(0.5) * p.w, half_h = T(0.5) * p.h;
  hull.u = box.x * at.turn.cos + box.y * at.turn.sin;
  hull.v = box.y * at.turn.cos - box.x * at.turn.sin;
  hull.by_x = excess(box.a, half_w * hull.cos + half_h * hull.sin, box.x);
  hull.by_y = excess(box.b, half_w * hull.sin + half_h * hull.cos, box.y);
  hull.by_u = excess(box.a * hull.cos + box.b * hull.sin, half_w, hull.u);
  hull.by_v = excess(box.a * hull.sin + box.b * hull.cos, half_h, hull.v);
  hull.area = area(p) + ((box.b * hull.by_x.sum + box.a * hull.by_y.sum) +
                         (half_h * hull.by_u.sum + half_w * hull.by_v.sum));
  turned_at_ties(p, at, box, hull);
  hull.area = with_slope(hull.area, hull.pred_turned, p.angle);
  hull.area = with_slope(hull.area, hull.target_turned, t.angle);
  return hull;
}

/// The slopes of the two clamps.
template <class T>
struct ExcessSlopes {
  T sum, difference;  ///< forwards and backwards; forwards less backwards
};

template <class T>
BOXLOSS_HOST_DEVICE ExcessSlopes<T> slopes(const Excess<T>& e) {
  const T forwards = T(0.5) * halves_of_min(T(0), e.forwards);
  const T backwards = T(0.5) * halves_of_min(T(0), e.backwards);
  return {forwards + backwards, forwards - backwards};
}

/// The derivative of a magnitude: 0 at 0, between -1 and 1.
template <class T>
BOXLOSS_HOST_DEVICE T sign(const T& value) {
  return T(1) - halves_of_min(value, T(0));
}

/// Derivatives of the area, in the target's frame.
template <class T>
BOXLOSS_HOST_DEVICE PlacedDerivatives<T> hull_derivatives(const RotatedBox<T>& p,
                                                          const Placement<T>& at,
                                                          const Halves<T>& box,
                                                          const Hull<T>& hull) {
  const T half_w = T(0.5) * p.w, half_h = T(0.5) * p.h;
  const ExcessSlopes<T> x = slopes(hull.by_x), y = slopes(hull.by_y);
  const ExcessSlopes<T> u = slopes(hull.by_u), v = slopes(hull.by_v);
  // Each length times the slope of what it is multiplied by.
  const T of_x = box.b * x.sum, of_y = box.a * y.sum;
  const T of_u = half_h * u.sum, of_v = half_w * v.sum;
  PlacedDerivatives<T> d;
  d.other_w =
      (p.h + T(0.5) * hull.by_v.sum) - T(0.5) * (of_u + (of_x * hull.cos + of_y * hull.sin));
  d.other_h =
      (p.w + T(0.5) * hull.by_u.sum) - T(0.5) * (of_v + (of_x * hull.sin + of_y * hull.cos));
  d.own_w = T(0.5) * (hull.by_y.sum + (of_x + (of_u * hull.cos + of_v * hull.sin)));
  d.own_h = T(0.5) * (hull.by_x.sum + (of_y + (of_u * hull.sin + of_v * hull.cos)));
  const T along_u = half_h * u.difference, along_v = half_w * v.difference;
  d.x = at.turn.sin * along_v - at.turn.cos * along_u - box.b * x.difference;
  d.y = -(at.turn.sin * along_u + at.turn.cos * along_v) - box.a * y.difference;
  // Of the magnitudes of cosine and sine.
  const T cos_by = -(at.turn.sin * sign(at.turn.cos)), sin_by = at.turn.cos * sign(at.turn.sin);
  const T turned =
      of_u * (box.a * cos_by + box.b * sin_by) + of_v * (box.a * sin_by + box.b * cos_by) -
      of_x * (half_w * cos_by + half_h * sin_by) - of_y * (half_w * sin_by + half_h * cos_by);
  d.angle = turned + (along_v * hull.u - along_u * hull.v);
  return d;
}

}  // namespace boxloss::rotated
