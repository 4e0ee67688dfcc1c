// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../math/arithmetic.hpp"
#include "../ties.hpp"
#include "placement.hpp"

/// The area of the intersection of two rotated boxes. By Green's theorem it is a sum over the edges
/// of pred alone,
///   area = -sum of the integrals of clamp(y) d clamp(x),
/// with x and y in the target's frame, clamped to the target's half sides. Nothing is clipped or
/// sorted. Each integral is a Lipschitz function of the edge's ends, which neighbours share, so a
/// crossing of nearly parallel edges, however uncertain, costs no digits of the area.
namespace boxloss::rotated {

/// Both boxes in the target's frame: half sides of the target, centre and half axes of pred.
template <class T>
struct Halves {
  T a, b;
  T x, y;
  T ux, uy;  ///< of pred's width
  T vx, vy;  ///< of its height
};

/// `at` is pred's placement in the target's frame.
template <class T>
BOXLOSS_HOST_DEVICE Halves<T> halves(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                     const Placement<T>& at) {
  const T half_w = T(0.5) * p.w, half_h = T(0.5) * p.h;
  return {T(0.5) * t.w,
          T(0.5) * t.h,
          at.x,
          at.y,
          half_w * at.turn.cos,
          half_w * at.turn.sin,
          -(half_h * at.turn.sin),
          half_h * at.turn.cos};
}

/// Into [-bound, bound]. NaN is lost on a GPU, but not in the area, where unclamped numbers enter.
template <class T>
BOXLOSS_HOST_DEVICE T clamp(const T& value, const T& bound) {
  return smaller(larger(value, -bound), bound);
}

/// An edge of pred from (x0, y0) to (x1, y1), and the part of it for which |x| <= a, which may be a
/// point.
template <class T>
struct Edge {
  T x0, y0, x1, y1;
  T dx;  ///< x1 - x0, from the axes and so with all its digits
  T x0_clamped, x1_clamped;
  T before, after;  ///< the shares of the edge before and after the part
  T begin, end;     ///< where the part's y begins and ends
  T begin_clamped, end_clamped;
};

/// The edge whose middle is the centre and (mx, my), and which reaches to (ex, ey) from there.
template <class T>
BOXLOSS_HOST_DEVICE Edge<T> edge(const Halves<T>& box, const T& mx, const T& my, const T& ex,
                                 const T& ey) {
  const T x = box.x + mx, y = box.y + my;
  Edge<T> e;
  e.x0 = x - ex;
  e.y0 = y - ey;
  e.x1 = x + ex;
  e.y1 = y + ey;
  e.dx = T(2) * ex;
  const T dy = T(2) * ey;
  e.x0_clamped = clamp(e.x0, box.a);
  e.x1_clamped = clamp(e.x1, box.a);
  e.before = share(e.x0_clamped - e.x0, e.dx);
  e.after = share(e.x1 - e.x1_clamped, e.dx);
  e.begin = e.y0 + e.before * dy;
  e.end = e.y1 - e.after * dy;
  e.begin_clamped = clamp(e.begin, box.b);
  e.end_clamped = clamp(e.end, box.b);
  return e;
}

/// pred's edges, each named by its outer normal. Opposite ones run the same way, so that they share
/// a division; two of them run against the way around the box.
template <class T>
struct Edges {
  Edge<T> right, left, bottom, top;
};

template <class T>
BOXLOSS_HOST_DEVICE Edges<T> edges(const Halves<T>& box) {
  return {edge(box, box.ux, box.uy, box.vx, box.vy), edge(box, -box.ux, -box.uy, box.vx, box.vy),
          edge(box, box.vx, box.vy, box.ux, box.uy), edge(box, -box.vx, -box.vy, box.ux, box.uy)};
}

/// Twice the integral of clamp(y) - base by clamp(x). Of what reaches beyond |y| = b, the clamp
/// takes away all but the share that lies within.
template <class T>
BOXLOSS_HOST_DEVICE T twice_integral(const Edge<T>& e, const T& base) {
  const T within = share(e.end_clamped - e.begin_clamped, e.end - e.begin);
  const T beyond = (e.begin - e.begin_clamped) + (e.end - e.end_clamped);
  return (((e.begin_clamped - base) + (e.end_clamped - base)) + beyond * within) *
         (e.x1_clamped - e.x0_clamped);
}

template <class T>
BOXLOSS_HOST_DEVICE T intersection_area(const Halves<T>& box, const Edges<T>& e) {
  // Any constant would do; with this one boxes that are apart have exactly 0.
  const T base = hold_constant(clamp(box.y, box.b));
  const T area = T(0.5) * ((twice_integral(e.left, base) - twice_integral(e.right, base)) +
                           (twice_integral(e.bottom, base) - twice_integral(e.top, base)));
  // Boxes that only touch have no derivative. NaN stays.
  return select(area > T(0), area, T(0) * area);
}

/// What an edge contributes to the derivatives: moving a border of the intersection outwards adds
/// its length.
template <class T>
struct EdgeShares {
  T inside;      ///< the share of the edge inside the target, half of it where edges coincide
  T lever;       ///< of that: how far its middle is from the edge's, in halves of the edge
  T by_a, by_b;  ///< derivatives of the area by the target's half sides
};

/// The share of a line at `value` that lies beyond `bound`, half of it at the bound, where the line
/// runs along the bound and so has no crossing with it.
template <class T>
BOXLOSS_HOST_DEVICE T parallel_beyond(const T& value, const T& bound, const T& extent) {
  return select(has_reciprocal(extent), T(0),
                T(1) - T(0.5) * halves_of_min(magnitude(value), bound));
}

template <class T>
BOXLOSS_HOST_DEVICE T with_sign_of(const T& sign, const T& value) {
  return select(sign < T(0), -value, value);
}

template <class T>
BOXLOSS_HOST_DEVICE EdgeShares<T> edge_shares(const Halves<T>& box, const Edge<T>& e) {
  const T dx = e.x1_clamped - e.x0_clamped, dy = e.end - e.begin;
  const T below = share(e.begin_clamped - e.begin, dy), above = share(e.end - e.end_clamped, dy);
  const T x_beyond = parallel_beyond(e.x0, box.a, e.dx);
  const T y_beyond = parallel_beyond(e.begin, box.b, dy);
  const T part = (T(1) - e.before) - e.after;
  EdgeShares<T> shares;
  shares.inside = (part - x_beyond) * (((T(1) - below) - above) - y_beyond);
  shares.lever = shares.inside * ((e.before - e.after) + part * (below - above));
  // The area is the integral of clamp(x) by clamp(y), too: a changes it where |x| > a.
  shares.by_a = with_sign_of(e.x0, (e.begin_clamped - clamp(e.y0, box.b)) +
                                       x_beyond * (e.end_clamped - e.begin_clamped)) +
                with_sign_of(e.x1, clamp(e.y1, box.b) - e.end_clamped);
  shares.by_b = -(with_sign_of(e.begin, below + y_beyond) + with_sign_of(e.end, above)) * dx;
  return shares;
}

/// Derivatives of the area, in the target's frame.
template <class T>
BOXLOSS_HOST_DEVICE PlacedDerivatives<T> intersection_derivatives(const RotatedBox<T>& p,
                                                                  const Placement<T>& at,
                                                                  const Halves<T>& box,
                                                                  const Edges<T>& e) {
  const EdgeShares<T> right = edge_shares(box, e.right), left = edge_shares(box, e.left);
  const EdgeShares<T> bottom = edge_shares(box, e.bottom), top = edge_shares(box, e.top);
  const T half_w = T(0.5) * p.w, half_h = T(0.5) * p.h;
  // The force on pred, along its axes.
  const T force_w = p.h * (right.inside - left.inside);
  const T force_h = p.w * (bottom.inside - top.inside);
  PlacedDerivatives<T> d;
  d.other_w = half_h * (right.inside + left.inside);
  d.other_h = half_w * (bottom.inside + top.inside);
  d.own_w = T(0.5) * ((right.by_a - left.by_a) + (top.by_a - bottom.by_a));
  d.own_h = T(0.5) * ((right.by_b - left.by_b) + (top.by_b - bottom.by_b));
  d.x = at.turn.cos * force_w - at.turn.sin * force_h;
  d.y = at.turn.sin * force_w + at.turn.cos * force_h;
  d.angle = half_h * p.h * (left.lever - right.lever) + half_w * p.w * (bottom.lever - top.lever);
  return d;
}

}  // namespace boxloss::rotated
