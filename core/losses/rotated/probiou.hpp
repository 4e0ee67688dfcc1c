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
    return root(overlap(centres(g).m, shapes(g)).missing).value;
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE RotatedPairGradient<T> derivatives(const RotatedBox<T>& p,
                                                                const RotatedBox<T>& t,
                                                                const Constants<T>& c) {
    Gaussians<T> g = gaussians(p, t, T(12) * c.own[0]);
    Shapes<T> s = shapes(g);
    Centres<T> m = centres(g);
    const Overlap<T> o = overlap(m.m, s);
    const Root<T> loss = root(o.missing);
    const T by_d = o.value * loss.slope;
    // Far boxes, where exp(-m) is next to 0: their m may have no finite derivative.
    const auto is_far = m.m > T(87);
    m.along_x = select(is_far, T(0), m.along_x);
    m.along_y = select(is_far, T(0), m.along_y);
    return to_gradient(
        p, g, loss.value,
        select(is_far, T(0), by_d) * (centre_derivatives(g, m) + T(0.5) * log_derivatives(g, s)));
  }

 private:
  /// exp(-D), and 1 - exp(-D).
  template <class T>
  struct Overlap {
    T value, missing;
  };

  /// Both parts of what is missing are 0 or more: 1 - exp(-m), and exp(-m) times 1 - 1 / sqrt(a),
  /// which is k / (a + sqrt(a)), for a = 1 + k.
  template <class T>
  static BOXLOSS_HOST_DEVICE Overlap<T> overlap(const T& m, const Shapes<T>& s) {
    const T a = T(1) + s.k, per_root = reciprocal_sqrt(a);
    const T near = exp(-m);
    return {near * per_root, near * (s.k * reciprocal_of_normal(a * per_root + a)) - expm1(-m)};
  }

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
    const T cos_cos = cos * cos, sin_sin = sin * sin;
    const T per_xx = reciprocal_of_normal(g.t_ww * cos_cos + (g.t_hh * sin_sin + g.p_ww));
    const T xy = (g.t_ww - g.t_hh) * (sin * cos);
    const T rest = (g.t_ww * per_xx) * g.t_hh +
                   ((g.p_ww * per_xx) * (g.t_ww * sin_sin + g.t_hh * cos_cos) + g.p_hh);
    const T off = y - (xy * per_xx) * x;
    const T along_y = off * reciprocal_of_normal(rest);
    return {T(3) * (x * (x * per_xx) + off * along_y), (x - xy * along_y) * per_xx, along_y};
  }

  /// The derivative of d' M^-1 d by M is -(M^-1 d) (M^-1 d)'.
  template <class T>
  static BOXLOSS_HOST_DEVICE PlacedDerivatives<T> centre_derivatives(const Gaussians<T>& g,
                                                                     const Centres<T>& m) {
    const T cos = g.turn.cos, sin = g.turn.sin;
    const T along_u = cos * m.along_x + sin * m.along_y,
            along_v = cos * m.along_y - sin * m.along_x;
    const auto by_side = [](const T& square, const T& along) {
      return T(-6) * ((square * along) * along);
    };
    PlacedDerivatives<T> d;
    d.own_w = by_side(g.p_ww, m.along_x);
    d.own_h = by_side(g.p_hh, m.along_y);
    d.other_w = by_side(g.t_ww, along_u);
    d.other_h = by_side(g.t_hh, along_v);
    d.x = T(6) * m.along_x;
    d.y = T(6) * m.along_y;
    d.angle = T(-6) * (((g.t_ww - g.t_hh) * along_u) * along_v);
    return d;
  }
};

}  // namespace boxloss::rotated
