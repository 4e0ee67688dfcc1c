// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shapes.hpp"

namespace boxloss::rotated {

/// mmrotate's `kfiou_loss` (mmrotate/models/losses/kf_iou_loss.py) without the smooth L1 loss of
/// the centres that it adds: Yang et al., "The KFIoU Loss for Rotated Object Detection", 2022. With
/// V the area that a Kalman filter's product of the two Gaussians stands for,
///   loss = 1 - V / (wh + WH - V),
/// wherever the boxes lie; it is 2/3 for equal ones, and has no gradient by the centres. Variances
/// are w^2 / 4 + floor.
struct Kfiou {
  static constexpr LossParameter kParameters[] = {{"floor", 1e-15, 0}};

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                    const Constants<T>& c) {
    Gaussians<T> g = gaussians(p, t, T(4) * c.own[0]);
    return T(1) - reciprocal(ratio(g, shapes(g)) - T(1));
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE RotatedPairGradient<T> derivatives(const RotatedBox<T>& p,
                                                                const RotatedBox<T>& t,
                                                                const Constants<T>& c) {
    Gaussians<T> g = gaussians(p, t, T(4) * c.own[0]);
    Shapes<T> s = shapes(g);
    const T q = ratio(g, s), per = reciprocal(q - T(1)), by_log = (q * per) * per;
    const T areas = T(0.125) * (slope(s, s.areas) * reciprocal_of_normal(areas_part(s)));
    PlacedDerivatives<T> d = T(0.5) * log_derivatives(g, s);
    d.own_w = d.own_w + areas;
    d.own_h = d.own_h + areas;
    d.other_w = d.other_w - areas;
    d.other_h = d.other_h - areas;
    return to_gradient(p, g, T(1) - per, by_log * d);
  }

 private:
  /// (wh + WH) / V, at least 4: 1 / V^2 = 4 (1 + k) / (whWH), and (wh + WH)^2 / (whWH) = 4 + chi.
  /// NaN in a centre is kept.
  template <class T>
  static BOXLOSS_HOST_DEVICE T ratio(const Gaussians<T>& g, const Shapes<T>& s) {
    const T none = T(0) * (g.at.x + g.at.y);
    return T(4) * (sqrt(T(1) + s.k) * sqrt(areas_part(s))) + none;
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE T areas_part(const Shapes<T>& s) {
    return T(1) + T(0.25) * (s.areas.difference * (s.areas.difference * s.per_product));
  }
};

}  // namespace boxloss::rotated
