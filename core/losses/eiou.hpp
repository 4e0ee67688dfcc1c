// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distance.hpp"

namespace boxloss {

/// Efficient IoU loss: Zhang et al., "Focal and Efficient IOU Loss", 2021. DIoU's and the squared
/// differences of the sides, each relative to the enclosure's,
///   (w_p - w_t)^2 / c_w^2' + (h_p - h_t)^2 / c_h^2'.
struct Eiou {
  static constexpr bool kUsesEnds = true;

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    DiouTerms<T> g = diou_terms(p, t, eps);
    return g.loss + side(x_sides(p, t), g.distance.enclosure.w, eps).value +
           side(y_sides(p, t), g.distance.enclosure.h, eps).value;
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Eps<T>& eps) {
    DiouTerms<T> g = diou_terms(p, t, eps);
    Derivatives<T> d = diou_derivatives(p, t, eps, g);
    add_side(side(x_sides(p, t), g.distance.enclosure.w, eps), eps, d.x, d.loss);
    add_side(side(y_sides(p, t), g.distance.enclosure.h, eps), eps, d.y, d.loss);
    return d;
  }

 private:
  /// pred's side less target's.
  template <class T>
  static BOXLOSS_HOST_DEVICE T x_sides(const Box<T>& p, const Box<T>& t) {
    return (p.x2 - p.x1) - (t.x2 - t.x1);
  }
  template <class T>
  static BOXLOSS_HOST_DEVICE T y_sides(const Box<T>& p, const Box<T>& t) {
    return (p.y2 - p.y1) - (t.y2 - t.y1);
  }

  template <class T>
  struct Side {
    T difference, enclosing;
    Guarded<T> square;  ///< of the enclosure's side
    T per_square, value;
  };

  template <class T>
  static BOXLOSS_HOST_DEVICE Side<T> side(const T& difference, const T& enclosing,
                                          const Eps<T>& eps) {
    Guarded<T> square = guard(enclosing * enclosing, eps);
    const T per = reciprocal(square.value);
    return {difference, enclosing, square, per, difference * difference * per};
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE void add_side(const Side<T>& s, const Eps<T>& eps,
                                           AxisDerivatives<T>& d, T& loss) {
    const T by_difference = T(2) * (s.difference * s.per_square);
    loss = loss + s.value;
    d.p_side = d.p_side + by_difference;
    d.t_side = d.t_side - by_difference;
    d.enclosing =
        d.enclosing + T(-2) * slope(s.square, eps) * s.value * (s.enclosing * s.per_square);
  }
};

}  // namespace boxloss
