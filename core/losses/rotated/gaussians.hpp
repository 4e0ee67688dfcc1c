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

/// Both Gaussians in pred's frame, the target's turned by an eighth of a turn at most: beyond that,
/// its sides are exchanged, so that sides are compared with those that they resemble. Sides are
/// those of boxes whose variances have no floor; with it, no side is 0.
template <class T>
struct Gaussians {
  Placement<T> at;     ///< the target's, in pred's frame, before the exchange
  SinCos<T> turn;      ///< after it
  T t_box_w, t_box_h;  ///< the box' sides, after it
  T p_w, p_h, t_w, t_h;
  T w_less, h_less;  ///< pred's side less the target's, with all its digits
  T per_p_w, per_p_h, per_t_w, per_t_h;
};

/// `floor` is that of a side's square.
template <class T>
BOXLOSS_HOST_DEVICE Gaussians<T> gaussians(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                           const T& floor) {
  Gaussians<T> g;
  g.at = place(p, t);
  // Copies: of two members, clang selects the address, and keeps the struct in a GPU's memory.
  const SinCos<T> turn = g.at.turn;
  const auto is_exchanged = is_across(turn);
  g.turn = {select(is_exchanged, -turn.cos, turn.sin), select(is_exchanged, turn.sin, turn.cos)};
  g.t_box_w = select(is_exchanged, t.h, t.w);
  g.t_box_h = select(is_exchanged, t.w, t.h);
  g.p_w = sqrt(p.w * p.w + floor);
  g.p_h = sqrt(p.h * p.h + floor);
  const T t_w = sqrt(t.w * t.w + floor), t_h = sqrt(t.h * t.h + floor);
  g.t_w = select(is_exchanged, t_h, t_w);
  g.t_h = select(is_exchanged, t_w, t_h);
  g.w_less = (p.w - g.t_box_w) * ((p.w + g.t_box_w) * reciprocal(g.p_w + g.t_w));
  g.h_less = (p.h - g.t_box_h) * ((p.h + g.t_box_h) * reciprocal(g.p_h + g.t_h));
  g.per_p_w = reciprocal(g.p_w);
  g.per_p_h = reciprocal(g.p_h);
  g.per_t_w = reciprocal(g.t_w);
  g.per_t_h = reciprocal(g.t_h);
  return g;
}

/// From derivatives by the Gaussians' sides.
template <class T>
BOXLOSS_HOST_DEVICE RotatedPairGradient<T> to_gradient(const RotatedBox<T>& p,
                                                       const Gaussians<T>& g, const T& loss,
                                                       PlacedDerivatives<T> by) {
  by.own_w = by.own_w * (p.w * g.per_p_w);
  by.own_h = by.own_h * (p.h * g.per_p_h);
  const T by_w = by.other_w * (g.t_box_w * g.per_t_w), by_h = by.other_h * (g.t_box_h * g.per_t_h);
  const auto is_exchanged = is_across(g.at.turn);
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
  const T value = sqrt(larger(x, smallest_divisor<T>())), none = T(0) * x;
  return {select(is_some, value, none), select(is_some, T(0.5) * reciprocal(value), none)};
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
  const T per = reciprocal(tau + excess);
  const T by_distance = per * per * reciprocal(T(1) + distance.value);
  return {((tau - T(1)) + excess) * per, by_distance * distance.slope};
}

}  // namespace boxloss::rotated
