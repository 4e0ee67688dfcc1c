// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/arithmetic.hpp"
#include "../math/box.hpp"
#include "../math/host_device.hpp"
#include "derivatives.hpp"
#include "eps.hpp"

/// Intersection over union, the basis of all formulas.
namespace boxloss {

/// The intersection, empty where the boxes only touch, and the union after eps.
template <class T>
struct Overlap {
  T inter_w, inter_h, inter;
  Guarded<T> uni;
  T per_uni;  ///< 1 / uni.value
};

/// Whether the boxes share more than an edge.
template <class T>
BOXLOSS_HOST_DEVICE auto is_overlap(const T& inter_w, const T& inter_h) {
  return both(inter_w > T(0), inter_h > T(0));
}

template <class T>
BOXLOSS_HOST_DEVICE Overlap<T> overlap(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
  const T w = smaller(p.x2, t.x2) - larger(p.x1, t.x1);
  const T h = smaller(p.y2, t.y2) - larger(p.y1, t.y1);
  const T inter = select(is_overlap(w, h), w * h, T(0));
  Guarded<T> uni = guard(area(p) + area(t) - inter, eps);
  return {w, h, inter, uni, reciprocal(uni.value)};
}

template <class T>
BOXLOSS_HOST_DEVICE T iou_of(const Overlap<T>& o) {
  return o.inter * o.per_uni;
}

/// Derivatives by lengths from those by the union and by the intersection. The union contains the
/// intersection; `by_inter` has an effect only where the boxes overlap.
template <class T>
BOXLOSS_HOST_DEVICE Derivatives<T> through_overlap(const Box<T>& p, const Box<T>& t,
                                                   const Overlap<T>& o, T loss, T by_uni,
                                                   T by_inter) {
  const T inter = select(is_overlap(o.inter_w, o.inter_h), by_inter, T(0));
  Derivatives<T> d;
  d.loss = loss;
  d.x = {by_uni * (p.y2 - p.y1), by_uni * (t.y2 - t.y1), inter * o.inter_h, T(0), T(0), T(0)};
  d.y = {by_uni * (p.x2 - p.x1), by_uni * (t.x2 - t.x1), inter * o.inter_w, T(0), T(0), T(0)};
  return d;
}

/// Derivatives by lengths from the one by the intersection over union.
template <class T>
BOXLOSS_HOST_DEVICE Derivatives<T> through_iou(const Box<T>& p, const Box<T>& t,
                                               const Overlap<T>& o, const Eps<T>& eps, T loss,
                                               T by_iou) {
  const T by_uni = -slope(o.uni, eps) * (by_iou * (iou_of(o) * o.per_uni));
  return through_overlap(p, t, o, loss, by_uni, by_iou * o.per_uni - by_uni);
}

}  // namespace boxloss
