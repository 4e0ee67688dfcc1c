// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gaussians.hpp"

namespace boxloss::rotated {

/// mmrotate's `kld_loss` (mmrotate/models/losses/gaussian_dist_loss.py) with fun="log1p" and
/// sqrt=True: Yang et al., "Learning High-Precision Bounding Box for Rotated Object Detection via
/// Kullback-Leibler Divergence", 2021. The loss of sqrt(D), D being the divergence of pred's
/// Gaussian from the target's; variances are w^2 / 4 + floor. With sides w, h of pred and W, H of
/// the target, whose centre is (x, y) in pred's frame,
///   D = 2 (x^2 / w^2 + y^2 / h^2) + (f(W / w) + f(H / h)) / 2
///       + sin^2 (W^2 - H^2) (w^2 - h^2) / (2 w^2 h^2), f(r) = r^2 - 1 - 2 log(r).
/// At equal boxes loss (of tau = 1) and gradient are 0.
struct Kld {
  static constexpr LossParameter kParameters[] = {{"tau", 1, 1}, {"floor", 1e-15, 0}};

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                    const Constants<T>& c) {
    return distance_loss(divergence(gaussians(p, t, T(4) * c.own[1])).value, c.own[0]).value;
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE RotatedPairGradient<T> derivatives(const RotatedBox<T>& p,
                                                                const RotatedBox<T>& t,
                                                                const Constants<T>& c) {
    Gaussians<T> g = gaussians(p, t, T(4) * c.own[1]);
    Divergence<T> k = divergence(g);
    const DistanceLoss<T> loss = distance_loss(k.value, c.own[0]);
    const T cos = g.turn.cos, sin = g.turn.sin, by = loss.slope;
    const T w_excess = k.w_part * (k.w_part + T(2)), h_excess = k.h_part * (k.h_part + T(2));
    // Each `by` times a small factor first: the divergence of far boxes is near the largest number.
    const T of_pred = by * (sin * sin * k.of_target), of_target = by * (sin * sin * k.of_pred);
    PlacedDerivatives<T> d;
    d.own_w = of_pred * (g.p_h * k.per_p_w) - by * (w_excess + T(4) * (k.x * k.x));
    d.own_h = -(of_pred * (g.p_w * k.per_p_h) + by * (h_excess + T(4) * (k.y * k.y)));
    d.other_w = by * w_excess + of_target * (g.t_ww * k.per_p_area);
    d.other_h = by * h_excess - of_target * (g.t_hh * k.per_p_area);
    d.x = T(4) * ((by * k.x) * k.per_p_w);
    d.y = T(4) * ((by * k.y) * k.per_p_h);
    d.angle = (by * (sin * cos * k.of_target)) * k.of_pred;
    return to_gradient(p, g, loss.value, d);
  }

 private:
  template <class T>
  struct Divergence {
    T value;
    T per_p_w, per_p_h, per_p_area;
    T x, y;                ///< the target's centre in pred's sides
    T w_part, h_part;      ///< W / w - 1, H / h - 1
    T of_pred, of_target;  ///< the differences of squares, over pred's area
  };

  template <class T>
  static BOXLOSS_HOST_DEVICE Divergence<T> divergence(const Gaussians<T>& g) {
    const T sin = g.turn.sin;
    Divergence<T> k;
    k.per_p_w = reciprocal_of_normal(g.p_w);
    k.per_p_h = reciprocal_of_normal(g.p_h);
    k.per_p_area = k.per_p_w * k.per_p_h;
    k.x = g.at.x * k.per_p_w;
    k.y = g.at.y * k.per_p_h;
    k.w_part = -(g.w_less * k.per_p_w);
    k.h_part = -(g.h_less * k.per_p_h);
    k.of_pred = ((g.p_w - g.p_h) * (g.p_w + g.p_h)) * k.per_p_area;
    k.of_target = ((g.t_w - g.t_h) * (g.t_w + g.t_h)) * k.per_p_area;
    const T sizes = side(k.w_part, g.t_w * k.per_p_w) + side(k.h_part, g.t_h * k.per_p_h);
    const T turned = T(0.5) * ((sin * sin * k.of_target) * k.of_pred);
    k.value = T(2) * (k.x * k.x + k.y * k.y) + (sizes + turned);
    return k;
  }

  /// f(r) / 2, for z = r - 1: z^2 / 2 + (z - log(1 + z)). The latter is, with y = z / (2 + z),
  /// z y - 2 (y^3 / 3 + y^5 / 5 + ...), by which it keeps its digits where r is near 1.
  template <class T>
  static BOXLOSS_HOST_DEVICE T side(const T& z, const T& r) {
    const auto is_near = both(z > T(-0.35), z < T(0.5));
    const T y = z * reciprocal(T(2) + z), yy = y * y;
    T series = T(1. / 21);
    series = series * yy + T(1. / 19);
    series = series * yy + T(1. / 17);
    series = series * yy + T(1. / 15);
    series = series * yy + T(1. / 13);
    series = series * yy + T(1. / 11);
    series = series * yy + T(1. / 9);
    series = series * yy + T(1. / 7);
    series = series * yy + T(1. / 5);
    series = series * yy + T(1. / 3);
    return T(0.5) * (z * z) + select(is_near, z * y - T(2) * (y * yy * series), z - log(r));
  }
};

}  // namespace boxloss::rotated
