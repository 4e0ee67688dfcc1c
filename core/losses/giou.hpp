// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "losses/overlap.hpp"

namespace boxloss {

/// Generalized IoU loss: Rezatofighi et al., "Generalized Intersection over Union", CVPR 2019. With
/// U' and C' the union and the enclosing area after eps,
///   loss = 1 - (I / U' - (C' - U') / C').
struct Giou {
  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    return loss(terms(p, t, eps));
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE PairGradient<T> gradient(const Box<T>& p, const Box<T>& t,
                                                      const Eps<T>& eps) {
    const Terms<T> g = terms(p, t, eps);
    // Of the loss: by the union, by the intersection (which the union contains), by the enclosure.
    const T by_uni = slope(g.overlap.uni, eps) *
                     (g.overlap.inter * g.overlap.per_uni * g.overlap.per_uni - g.per_enclosing);
    const T by_inter =
        select(is_overlap(g.overlap.inter_w, g.overlap.inter_h), -g.overlap.per_uni - by_uni, T(0));
    const T by_enclosing =
        slope(g.area, eps) * (g.overlap.uni.value * g.per_enclosing * g.per_enclosing);

    PairGradient<T> d;
    d.loss = loss(g);
    const T half_inter = T(0.5) * by_inter;
    const T half_enclosing = T(0.5) * by_enclosing;
    axis_gradient(p.x1, p.x2, t.x1, t.x2, by_uni * (p.y2 - p.y1), by_uni * (t.y2 - t.y1),
                  half_inter * g.overlap.inter_h, half_enclosing * g.enclosure.h, d.pred.x1,
                  d.pred.x2, d.target.x1, d.target.x2);
    axis_gradient(p.y1, p.y2, t.y1, t.y2, by_uni * (p.x2 - p.x1), by_uni * (t.x2 - t.x1),
                  half_inter * g.overlap.inter_w, half_enclosing * g.enclosure.w, d.pred.y1,
                  d.pred.y2, d.target.y1, d.target.y2);
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
    const Overlap<T> o = overlap(p, t, eps);
    const Enclosure<T> e = enclosure(p, t);
    const Guarded<T> enclosing = guard(e.w * e.h, eps);
    return {o, e, enclosing, reciprocal(enclosing.value)};
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Terms<T>& g) {
    const T giou = g.overlap.inter * g.overlap.per_uni -
                   (g.area.value - g.overlap.uni.value) * g.per_enclosing;
    return T(1) - giou;
  }
};

}  // namespace boxloss
