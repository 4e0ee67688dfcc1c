// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "overlap.hpp"

namespace boxloss {

/// Generalized IoU loss: Rezatofighi et al., "Generalized Intersection over Union", CVPR 2019. With
/// U' and C' the union and the enclosing area after eps,
///   loss = 1 - (I / U' - (C' - U') / C').
struct Giou {
  static constexpr bool kUsesEnds = false;

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    return loss(terms(p, t, eps));
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Eps<T>& eps) {
    Terms<T> g = terms(p, t, eps);
    const Overlap<T>& o = g.overlap;
    const T by_uni = slope(o.uni, eps) * (o.inter * o.per_uni * o.per_uni - g.per_enclosing);
    const T by_enclosing = slope(g.area, eps) * (o.uni.value * g.per_enclosing * g.per_enclosing);
    Derivatives<T> d = through_overlap(p, t, o, loss(g), by_uni, -o.per_uni - by_uni);
    d.x.enclosing = by_enclosing * g.enclosure.h;
    d.y.enclosing = by_enclosing * g.enclosure.w;
    return d;
  }

 private:
  template <class T>
  struct Terms {
    Overlap<T> overlap;
    Enclosure<T> enclosure;
    Guarded<T> area;  ///< of the enclosure
    T per_enclosing;
  };

  template <class T>
  static BOXLOSS_HOST_DEVICE Terms<T> terms(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    Overlap<T> o = overlap(p, t, eps);
    Enclosure<T> e = enclosure(p, t);
    Guarded<T> enclosing = guard(e.w * e.h, eps);
    return {o, e, enclosing, reciprocal(enclosing.value)};
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Terms<T>& g) {
    const T giou = iou_of(g.overlap) - (g.area.value - g.overlap.uni.value) * g.per_enclosing;
    return T(1) - giou;
  }
};

}  // namespace boxloss
