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

/// n - m and n + m of a ratio z = n / m, in units of which n m is the same for all three.
template <class T>
struct Ratio {
  T difference, sum;
};

template <class T>
struct Shapes {
  T unit;                         ///< of a product of a width and a height, inverted
  Ratio<T> areas, along, across;  ///< wh / WH, wH / hW, wW / hH
  T per_product;                  ///< 1 / (n m)
  T k;
};

/// The unit is (w + W) (h + H) / 2, so that n m is at most 1/4.
template <class T>
BOXLOSS_HOST_DEVICE Shapes<T> shapes(const Gaussians<T>& g) {
  Shapes<T> s;
  s.unit = T(2) * (g.per_w * g.per_h);
  s.areas = {(g.w_less * g.p_h + g.t_w * g.h_less) * s.unit,
             (g.p_w * g.p_h + g.t_w * g.t_h) * s.unit};
  s.along = {(g.w_less * g.t_h - g.t_w * g.h_less) * s.unit,
             (g.p_w * g.t_h + g.p_h * g.t_w) * s.unit};
  const T widths = (g.p_w * g.t_w) * s.unit, heights = (g.p_h * g.t_h) * s.unit;
  s.across = {widths - heights, widths + heights};
  // What is added makes the reciprocal of next to nothing finite.
  s.per_product = reciprocal_of_normal(widths * heights + smallest_divisor<T>());
  const T areas = s.areas.difference, along = g.turn.cos * s.along.difference,
          across = g.turn.sin * s.across.difference;
  const T k = T(0.25) * ((areas * areas + (along * along + across * across)) * s.per_product);
  s.k = -at_least(-k, T(-1e36));  // finite
  return s;
}

/// chi's logarithmic derivative, z - 1 / z.
template <class T>
BOXLOSS_HOST_DEVICE T slope(const Shapes<T>& s, const Ratio<T>& z) {
  return (z.difference * s.per_product) * z.sum;
}

/// Derivatives of log(1 + k).
template <class T>
BOXLOSS_HOST_DEVICE PlacedDerivatives<T> log_derivatives(const Gaussians<T>& g,
                                                         const Shapes<T>& s) {
  const T cos = g.turn.cos, sin = g.turn.sin;
  const T per = T(0.25) * reciprocal_of_normal(T(1) + s.k);
  const T areas = per * slope(s, s.areas);
  const T along = per * (cos * cos * slope(s, s.along));
  const T across = per * (sin * sin * slope(s, s.across));
  // chi(wW / hH) - chi(wH / hW)
  const T turning = ((g.p_ww - g.p_hh) * s.unit) * (((g.t_ww - g.t_hh) * s.unit) * s.per_product);
  PlacedDerivatives<T> d;
  d.own_w = areas + (along + across);
  d.own_h = areas - (along + across);
  d.other_w = (across - along) - areas;
  d.other_h = (along - across) - areas;
  d.x = T(0);
  d.y = T(0);
  d.angle = T(2) * per * (sin * cos * turning);
  return d;
}

}  // namespace boxloss::rotated
