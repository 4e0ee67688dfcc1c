// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gaussians.hpp"

/// How two Gaussians differ in shape, wherever they lie. The determinant of their mean covariance,
/// over the geometric mean of their determinants, is 1 + k,
///   k = (chi(wh / WH) + cos^2 chi(wH / hW) + sin^2 chi(wW / hH)) / 4, chi(z) = (z - 1)^2 / z,
/// with sides w, h and W, H, and the angle between them: a sum of squares, which keeps all digits
/// where boxes are nearly equal.
namespace boxloss::rotated {

/// chi of a ratio n / m, and its logarithmic derivative z - 1 / z.
template <class T>
struct RatioExcess {
  T chi, psi;
};

template <class T>
BOXLOSS_HOST_DEVICE RatioExcess<T> ratio_excess(const T& difference, const T& sum, const T& per_n,
                                                const T& per_m) {
  const T relative = difference * per_n;
  return {relative * (difference * per_m), relative * (sum * per_m)};
}

template <class T>
struct Shapes {
  T k;
  RatioExcess<T> areas;          ///< wh / WH
  RatioExcess<T> along, across;  ///< wH / hW, wW / hH
};

template <class T>
BOXLOSS_HOST_DEVICE Shapes<T> shapes(const Gaussians<T>& g) {
  const T cos = g.turn.cos, sin = g.turn.sin;
  Shapes<T> s;
  s.areas = ratio_excess(g.w_less * g.p_h + g.t_w * g.h_less, g.p_w * g.p_h + g.t_w * g.t_h,
                         g.per_p_w * g.per_p_h, g.per_t_w * g.per_t_h);
  s.along = ratio_excess(g.w_less * g.t_h - g.t_w * g.h_less, g.p_w * g.t_h + g.p_h * g.t_w,
                         g.per_p_w * g.per_t_h, g.per_p_h * g.per_t_w);
  s.across =
      ratio_excess((g.p_w - g.p_h) * g.t_w + g.p_h * (g.t_w - g.t_h), g.p_w * g.t_w + g.p_h * g.t_h,
                   g.per_p_w * g.per_t_w, g.per_p_h * g.per_t_h);
  s.k = T(0.25) * (s.areas.chi + (cos * cos * s.along.chi + sin * sin * s.across.chi));
  return s;
}

/// Derivatives of log(1 + k).
template <class T>
BOXLOSS_HOST_DEVICE PlacedDerivatives<T> log_derivatives(const Gaussians<T>& g,
                                                         const Shapes<T>& s) {
  const T cos = g.turn.cos, sin = g.turn.sin;
  const T per = T(0.25) * reciprocal(T(1) + s.k);
  const T areas = per * s.areas.psi;
  const T along = per * (cos * cos * s.along.psi), across = per * (sin * sin * s.across.psi);
  // chi(wW / hH) - chi(wH / hW)
  const T turning = ((g.p_w - g.p_h) * (g.p_w + g.p_h) * (g.per_p_w * g.per_p_h)) *
                    ((g.t_w - g.t_h) * (g.t_w + g.t_h) * (g.per_t_w * g.per_t_h));
  PlacedDerivatives<T> d;
  d.own_w = g.per_p_w * (areas + (along + across));
  d.own_h = g.per_p_h * (areas - (along + across));
  d.other_w = g.per_t_w * ((across - along) - areas);
  d.other_h = g.per_t_h * ((along - across) - areas);
  d.x = T(0);
  d.y = T(0);
  d.angle = T(2) * per * (sin * cos * turning);
  return d;
}

}  // namespace boxloss::rotated
