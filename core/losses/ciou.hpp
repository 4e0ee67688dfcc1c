// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "losses/aspect.hpp"
#include "losses/distance.hpp"

namespace boxloss {

/// Complete IoU loss: Zheng et al., "Distance-IoU Loss", AAAI 2020: DIoU's and alpha v, where
///   alpha = v / (max(1 - iou, 0) + v + eps), or max(..., eps), is a constant to the gradient.
struct Ciou {
  static constexpr bool kUsesCentres = true;

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    const DiouTerms<T> g = diou_terms(p, t, eps);
    const T v = aspect_penalty(angle_between(direction(p), direction(t)));
    return g.loss + alpha(g, v, eps) * v;
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Eps<T>& eps) {
    const DiouTerms<T> g = diou_terms(p, t, eps);
    const Direction<T> of_p = direction(p), of_t = direction(t);
    const T angle = angle_between(of_p, of_t);
    const T v = aspect_penalty(angle);
    const T a = alpha(g, v, eps);
    Derivatives<T> d = diou_derivatives(p, t, eps, g);
    d.loss = d.loss + a * v;
    add_aspect(of_p, of_t, angle, a, d);
    return d;
  }

 private:
  template <class T>
  static BOXLOSS_HOST_DEVICE T alpha(const DiouTerms<T>& g, const T& v, const Eps<T>& eps) {
    const T whole = larger(T(1) - iou_of(g.overlap), T(0)) + v;
    return hold_constant(fraction(v, guard(whole, eps).value));
  }
};

}  // namespace boxloss
