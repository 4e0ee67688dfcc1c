// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shapes.hpp"

namespace boxloss::rotated {

/// The Hellinger distance of the boxes' Gaussians, sqrt(1 - exp(-D)), D being Bhattacharyya's
/// distance: Llerena et al., "Gaussian Bounding Boxes and Probabilistic Intersection-over-Union for
/// Object Detection", 2021. Ultralytics' `probiou` (utils/metrics.py) is 1 less this loss, with a
/// bound of 1e-7 on D, without which nothing of D is lost. Variances are w^2 / 12 + floor, as
/// there.
///   D = m + log(1 + k) / 2, m = d' (P + T)^-1 d / 4, k as in shapes.hpp,
/// d the distance of the centres, P and T the covariances. At equal boxes loss and gradient are 0.
struct Probiou {
  static constexpr LossParameter kParameters[] = {{"floor", 1e-15, 0}};

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                    const Constants<T>& c) {
    Gaussians<T> g = gaussians(p, t, T(12) * c.own[0]);
    return root(-expm1(-distance(centres(g), shapes(g)))).value;
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE RotatedPairGradient<T> derivatives(const RotatedBox<T>& p,
                                                                const RotatedBox<T>& t,
                                                                const Constants<T>& c) {
    Gaussians<T> g = gaussians(p, t, T(12) * c.own[0]);
    Shapes<T> s = shapes(g);
    Centres<T> m = centres(g);
    const T d = distance(m, s);
    const Root<T> loss = root(-expm1(-d));
    const T by_d = exp(-d) * loss.slope;
    // Far boxes, where exp(-d) is next to 0: their m may have no finite derivative.
    const auto is_far = d > T(87);
    m.along_x = select(is_far, T(0), m.along_x);
    m.along_y = select(is_far, T(0), m.along_y);
    return to_gradient(
        p, g, loss.value,
        select(is_far, T(0), by_d) * (centre_derivatives(g, m) + T(0.5) * log_derivatives(g, s)));
  }

 private:
  /// m, and (along_x, along_y) = (P + T)^-1 d, in sides' squares.
  template <class T>
  struct Centres {
    T m, along_x, along_y;
  };

  /// By the decomposition of P + T = [[xx, xy], [xy, yy]] into squares. Of yy - xy^2 / xx the two
  /// parts that cancel are left out.
  template <class T>
  static BOXLOSS_HOST_DEVICE Centres<T> centres(const Gaussians<T>& g) {
    const T x = g.at.x, y = g.at.y, cos = g.turn.cos, sin = g.turn.sin;
    const T t_wc = g.t_w * cos, t_ws = g.t_w * sin, t_hc = g.t_h * cos, t_hs = g.t_h * sin;
    const T p_ww = g.p_w * g.p_w, t_area = g.t_w * g.t_h;
    const T per_xx = reciprocal(p_ww + (t_wc * t_wc + t_hs * t_hs));
    const T xy = (g.t_w - g.t_h) * (g.t_w + g.t_h) * (sin * cos);
    const T rest = (g.p_h * g.p_h + t_area * (t_area * per_xx)) +
                   (p_ww * per_xx) * (t_ws * t_ws + t_hc * t_hc);
    const T off = y - (xy * per_xx) * x;
    const T along_y = off * reciprocal(rest);
    return {T(3) * (x * (x * per_xx) + off * along_y), (x - xy * along_y) * per_xx, along_y};
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE T distance(const Centres<T>& m, const Shapes<T>& s) {
    return m.m + T(0.5) * log1p(s.k);
  }

  /// The derivative of d' M^-1 d by M is -(M^-1 d) (M^-1 d)'.
  template <class T>
  static BOXLOSS_HOST_DEVICE PlacedDerivatives<T> centre_derivatives(const Gaussians<T>& g,
                                                                     const Centres<T>& m) {
    const T cos = g.turn.cos, sin = g.turn.sin;
    const T along_u = cos * m.along_x + sin * m.along_y,
            along_v = cos * m.along_y - sin * m.along_x;
    const auto by_side = [](const T& side, const T& along) {
      return T(-6) * ((side * along) * along);
    };
    PlacedDerivatives<T> d;
    d.own_w = by_side(g.p_w, m.along_x);
    d.own_h = by_side(g.p_h, m.along_y);
    d.other_w = by_side(g.t_w, along_u);
    d.other_h = by_side(g.t_h, along_v);
    d.x = T(6) * m.along_x;
    d.y = T(6) * m.along_y;
    d.angle = T(-6) * (((g.t_w - g.t_h) * along_u) * ((g.t_w + g.t_h) * along_v));
    return d;
  }
};

}  // namespace boxloss::rotated
