// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gaussians.hpp"

namespace boxloss::rotated {

/// mmrotate's `gwd_loss` (mmrotate/models/losses/gaussian_dist_loss.py) with fun="log1p", alpha=1
/// and normalize=True: Yang et al., "Rethinking Rotated Object Detection with Gaussian Wasserstein
/// Distance Loss", 2021. The loss of sqrt(G), G being the squared Wasserstein distance of the
/// Gaussians, whose variances are w^2 / 4 + floor, over the geometric mean of the areas:
///   G = (d^2 + ((w - W)^2 + (h - H)^2 + 2 sin^2 (w^2 - h^2) (W^2 - H^2) / (S + R)) / 4) /
///   sqrt(whWH), S = wW + hH, R^2 = (cos S)^2 + (sin (wH + hW))^2.
/// At equal boxes loss (of tau = 1) and gradient are 0.
struct Gwd {
  static constexpr LossParameter kParameters[] = {{"tau", 1, 1}, {"floor", 1e-15, 0}};

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                    const Constants<T>& c) {
    return distance_loss(terms(gaussians(p, t, T(4) * c.own[1])).relative, c.own[0]).value;
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE RotatedPairGradient<T> derivatives(const RotatedBox<T>& p,
                                                                const RotatedBox<T>& t,
                                                                const Constants<T>& c) {
    Gaussians<T> g = gaussians(p, t, T(4) * c.own[1]);
    Terms<T> k = terms(g);
    const DistanceLoss<T> loss = distance_loss(k.relative, c.own[0]);
    const T cos = g.turn.cos, sin = g.turn.sin;
    const T by = loss.slope * k.per_area, by_scale = T(-0.5) * (loss.slope * k.relative);
    // The turned part's derivatives by the sides' squares, and by S + R.
    const T of_pred = sin * sin * (k.of_target * k.per_sum);
    const T of_target = sin * sin * (k.of_pred * k.per_sum);
    const T by_sum = -(of_pred * (k.of_pred * k.per_sum));
    // R's by S and by wH + hW.
    const T along = T(1) + k.cos_part * cos, across = k.sin_part * sin;
    const auto by_side = [&](const T& less, const T& of_square, const T& side, const T& facing,
                             const T& other) {
      const T turned = of_square * side + T(0.5) * (by_sum * (along * facing + across * other));
      return (by * (T(0.5) * less + turned)) * side + by_scale;
    };
    PlacedDerivatives<T> d;
    d.own_w = by_side(g.w_less, of_pred, g.p_w, g.t_w, g.t_h);
    d.own_h = by_side(g.h_less, -of_pred, g.p_h, g.t_h, g.t_w);
    d.other_w = by_side(-g.w_less, of_target, g.t_w, g.p_w, g.p_h);
    d.other_h = by_side(-g.h_less, -of_target, g.t_h, g.p_h, g.p_w);
    d.x = T(2) * (by * g.at.x);
    d.y = T(2) * (by * g.at.y);
    const T root_by_angle = k.sin_part * (cos * k.across) - k.cos_part * (sin * k.along);
    d.angle = by * (sin * cos * (k.of_target * (k.of_pred * k.per_sum)) +
                    T(0.5) * (by_sum * root_by_angle));
    return to_gradient(p, g, loss.value, d);
  }

 private:
  template <class T>
  struct Terms {
    T relative;            ///< G
    T per_area;            ///< 1 / sqrt(whWH)
    T of_pred, of_target;  ///< the differences of squares
    T along, across;       ///< wW + hH, wH + hW
    T cos_part, sin_part;  ///< the direction of (cos along, sin across), whose length is R
    T per_sum;             ///< 1 / (S + R)
  };

  template <class T>
  static BOXLOSS_HOST_DEVICE Terms<T> terms(const Gaussians<T>& g) {
    const T cos = g.turn.cos, sin = g.turn.sin;
    Terms<T> k;
    k.of_pred = (g.p_w - g.p_h) * (g.p_w + g.p_h);
    k.of_target = (g.t_w - g.t_h) * (g.t_w + g.t_h);
    k.along = g.p_w * g.t_w + g.p_h * g.t_h;
    k.across = g.p_w * g.t_h + g.p_h * g.t_w;
    // In units of the larger of the two, so that no fourth power is taken.
    const T unit = k.along + k.across, per_unit = reciprocal(unit);
    const T x = cos * (k.along * per_unit), y = sin * (k.across * per_unit);
    const T length = sqrt(x * x + y * y), per_length = reciprocal(length);
    k.cos_part = x * per_length;
    k.sin_part = y * per_length;
    k.per_sum = reciprocal(k.along + length * unit);
    const T turned = sin * sin * (k.of_pred * (k.of_target * k.per_sum));
    const T square = (g.at.x * g.at.x + g.at.y * g.at.y) +
                     T(0.25) * ((g.w_less * g.w_less + g.h_less * g.h_less) + T(2) * turned);
    k.per_area = reciprocal(sqrt(g.p_w * g.p_h) * sqrt(g.t_w * g.t_h));
    k.relative = square * k.per_area;
    return k;
  }
};

}  // namespace boxloss::rotated
