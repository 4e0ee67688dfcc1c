// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aspect.hpp"
#include "distance.hpp"

namespace boxloss {

/// Complete IoU loss: Zheng et al., "Distance-IoU Loss", AAAI 2020: DIoU's and alpha v, where
/// alpha, which `Formula` gives, is a constant to the gradient.
template <class Formula>
struct CiouWith {
  static constexpr bool kUsesEnds = true;

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    DiouTerms<T> g = diou_terms(p, t, eps);
    const T v = aspect_penalty(angle_between(direction(p), direction(t)));
    return g.loss + hold_constant(Formula::alpha(g.overlap, v, eps)) * v;
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Eps<T>& eps) {
    DiouTerms<T> g = diou_terms(p, t, eps);
    Direction<T> of_p = direction(p), of_t = direction(t);
    const T angle = angle_between(of_p, of_t);
    const T v = aspect_penalty(angle);
    const T alpha = Formula::alpha(g.overlap, v, eps);
    Derivatives<T> d = diou_derivatives(p, t, eps, g);
    d.loss = d.loss + alpha * v;
    add_aspect(of_p, of_t, angle, alpha, d);
    return d;
  }
};

/// max(1 - iou, 0) + v. Boxes that overlap have iou <= 1, but for its rounding.
template <class T>
BOXLOSS_HOST_DEVICE T distance_and_aspect(const Overlap<T>& o, const T& v) {
  return larger(T(1) - iou_of(o), T(0)) + v;
}

/// alpha = v / (max(1 - iou, 0) + v + eps), or / max(..., eps).
struct Ciou : CiouWith<Ciou> {
  template <class T>
  static BOXLOSS_HOST_DEVICE T alpha(const Overlap<T>& o, const T& v, const Eps<T>& eps) {
    return fraction(v, guard(distance_and_aspect(o, v), eps).value);
  }
};

}  // namespace boxloss
