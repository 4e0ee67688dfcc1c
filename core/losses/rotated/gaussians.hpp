// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../math/functions.hpp"
#include "../eps.hpp"
#include "placement.hpp"

/// Rotated boxes as Gaussians: the box' centre, and variances along its sides, a 12th of a side's
/// square (the box' own) or a quarter, plus a floor. All numbers here are lengths, ratios and
/// products of two lengths: fourth powers, which covariances and their determinants have, would
/// overflow.
namespace boxloss::rotated {

/// Whether the other box' width lies nearer to the own one's height than to its width.
template <class T>
BOXLOSS_HOST_DEVICE auto is_across(const SinCos<T>& turn) {
  return magnitude(turn.sin) > magnitude(turn.cos);
}

/// The direction of the angle between two boxes' nearest sides, at most an eighth of a turn; and
/// the angle before, which tells whether these are one's width and the other's height.
template <class T>
struct NearestSides {
  SinCos<T> turn, before;
};

template <class T>
BOXLOSS_HOST_DEVICE NearestSides<T> nearest_sides(T angle) {
  const SinCos<T> turn = sin_cos(angle);
  const auto is_exchanged = is_across(turn);
  return {{select(is_exchanged, -turn.cos, turn.sin), select(is_exchanged, turn.sin, turn.cos)},
          turn};
}

template <class T>
BOXLOSS_HOST_DEVICE auto are_exchanged(const NearestSides<T>& sides) {
  return is_across(sides.before);
}

/// Sine and cosine of a float know both before they are exchanged.
template <>
struct NearestSides<float> {
  SinCos<float> turn;
  std::uint32_t quarters;
};

BOXLOSS_HOST_DEVICE NearestSides<float> nearest_sides(float angle) {
  const Quarters<float> turn = quarters_in_single(angle);
  return {turn.rest, turn.number};
}

/// The last bit of their number, as a comparison of floats: of integers, g++ does not vectorize it.
BOXLOSS_HOST_DEVICE bool are_exchanged(const NearestSides<float>& sides) {
  return magnitude(bit_cast<float>(sides.quarters << 30)) > 1.0f;
}

/// Both Gaussians in pred's frame, the target's turned by an eighth of a turn at most: beyond that,
/// its sides are exchanged, so that sides are compared with those that they resemble. Sides are
/// those of boxes whose variances have no floor; with it, no side is 0.
template <class T>
struct Gaussians {
  Placement<T> at;           ///< the target's, in pred's frame
  NearestSides<T> sides;     ///< tells of the exchange
  SinCos<T> turn;            ///< after it
  T t_box_w, t_box_h;        ///< the box' sides, after it
  T p_ww, p_hh, t_ww, t_hh;  ///< the sides' squares
  T p_w, p_h, t_w, t_h;
  T per_w, per_h;    ///< of pred's side and the target's together
  T w_less, h_less;  ///< pred's side less the target's, with all its digits
};

/// `floor` is that of a side's square; the least one is the same in all types, since shapes of
/// boxes without a side depend on it.
template <class T>
BOXLOSS_HOST_DEVICE Gaussians<T> gaussians(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                           const T& floor) {
  Gaussians<T> g;
  const T least = larger(floor, smallest_divisor<T>());
  g.sides = nearest_sides(t.angle - p.angle);
  g.turn = g.sides.turn;
  g.at = place(p, t, line_direction(p.angle), g.turn);
  const auto is_exchanged = are_exchanged(g.sides);
  g.t_box_w = select(is_exchanged, t.h, t.w);
  g.t_box_h = select(is_exchanged, t.w, t.h);
  g.p_ww = p.w * p.w + least;
  g.p_hh = p.h * p.h + least;
  g.t_ww = g.t_box_w * g.t_box_w + least;
  g.t_hh = g.t_box_h * g.t_box_h + least;
  g.p_w = sqrt_of_normal(g.p_ww);
  g.p_h = sqrt_of_normal(g.p_hh);
  g.t_w = sqrt_of_normal(g.t_ww);
  g.t_h = sqrt_of_normal(g.t_hh);
  g.per_w = reciprocal_of_normal(g.p_w + g.t_w);
  g.per_h = reciprocal_of_normal(g.p_h + g.t_h);
  g.w_less = ((p.w - g.t_box_w) * (p.w + g.t_box_w)) * g.per_w;
  g.h_less = ((p.h - g.t_box_h) * (p.h + g.t_box_h)) * g.per_h;
  return g;
}

/// From derivatives by the logarithms of the Gaussians' sides.
template <class T>
BOXLOSS_HOST_DEVICE RotatedPairGradient<T> to_gradient(const RotatedBox<T>& p,
                                                       const Gaussians<T>& g, const T& loss,
                                                       PlacedDerivatives<T> by) {
  by.own_w = by.own_w * (p.w * reciprocal_of_normal(g.p_ww));
  by.own_h = by.own_h * (p.h * reciprocal_of_normal(g.p_hh));
  const T by_w = by.other_w * (g.t_box_w * reciprocal_of_normal(g.t_ww));
  const T by_h = by.other_h * (g.t_box_h * reciprocal_of_normal(g.t_hh));
  const auto is_exchanged = are_exchanged(g.sides);
  by.other_w = select(is_exchanged, by_h, by_w);
  by.other_h = select(is_exchanged, by_w, by_h);
  RotatedPairGradient<T> d;
  d.loss = loss;
  to_boxes(g.at, by, d.pred, d.target);
  return d;
}

/// A square root, and its derivative, which is 0 at 0: at the tip of a cone there is none.
template <class T>
struct Root {
  T value, slope;
};

/// Of x, which rounding may have made negative. NaN stays.
template <class T>
BOXLOSS_HOST_DEVICE Root<T> root(const T& x) {
  const auto is_some = x > smallest_divisor<T>();
  const T value = sqrt_of_normal(larger(x, smallest_divisor<T>())), none = T(0) * x;
  return {select(is_some, value, none),
          select(is_some, T(0.5) * reciprocal_of_normal(value), none)};
}

/// mmrotate's loss of a distance d, with its fun="log1p", for tau >= 1: 1 - 1 / (tau + log(1 + d))
/// (`postprocess` of mmrotate/models/losses/gaussian_dist_loss.py).
template <class T>
struct DistanceLoss {
  T value, slope;  ///< the loss, and its derivative by the squared distance
};

template <class T>
BOXLOSS_HOST_DEVICE DistanceLoss<T> distance_loss(const T& square, const T& tau) {
  const Root<T> distance = root(square);
  const T excess = log1p(distance.value);
  const T per = reciprocal_of_normal(tau + excess);
  const T by_distance = per * per * reciprocal_of_normal(T(1) + distance.value);
  return {((tau - T(1)) + excess) * per, by_distance * distance.slope};
}

}  // namespace boxloss::rotated
