// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hull.hpp"
#include "overlap.hpp"

namespace boxloss::rotated {

/// Generalized IoU loss with the convex hull of both boxes, which is the paper's general
/// definition: Rezatofighi et al., "Generalized Intersection over Union", CVPR 2019. With U' and C'
/// the union and the hull's area after eps,
///   loss = 1 - (I / U' - (C' - U') / C').
/// At angle 0 it is not `Giou`, whose enclosing box is larger than the hull.
struct Giou {
  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                    const Eps<T>& eps) {
    return loss(terms(p, t, eps));
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE RotatedPairGradient<T> derivatives(const RotatedBox<T>& p,
                                                                const RotatedBox<T>& t,
                                                                const Eps<T>& eps) {
    Terms<T> g = terms(p, t, eps);
    const Overlap<T>& o = g.overlap;
    const T by_uni = slope(o.uni, eps) * (o.inter * o.per_uni * o.per_uni - g.per_hull);
    const T by_hull = slope(g.area, eps) * (o.uni.value * g.per_hull * g.per_hull);
    RotatedPairGradient<T> d = to_gradient(o, loss(g),
                                           through_overlap(p, t, o, by_uni, -o.per_uni - by_uni) +
                                               by_hull * hull_derivatives(p, o.at, o.box, g.hull));
    d.pred.angle = d.pred.angle + by_hull * g.hull.pred_turned;
    d.target.angle = d.target.angle + by_hull * g.hull.target_turned;
    return d;
  }

 private:
  template <class T>
  struct Terms {
    Overlap<T> overlap;
    Hull<T> hull;
    Guarded<T> area;  ///< of the hull
    T per_hull;
  };

  template <class T>
  static BOXLOSS_HOST_DEVICE Terms<T> terms(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                            const Eps<T>& eps) {
    Overlap<T> o = overlap(p, t, eps);
    Hull<T> h = hull(p, t, o.at, o.box);
    Guarded<T> area = guard(h.area, eps);
    return {o, h, area, reciprocal(area.value)};
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Terms<T>& g) {
    return iou_loss(g.overlap) + (g.area.value - g.overlap.uni.value) * g.per_hull;
  }
};

}  // namespace boxloss::rotated
