// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../eps.hpp"
#include "intersection.hpp"

/// Intersection over union of rotated boxes, in the target's frame.
namespace boxloss::rotated {

template <class T>
struct Overlap {
  Placement<T> at;  ///< pred's, in the target's frame
  Halves<T> box;
  Edges<T> edges;
  T inter;
  Guarded<T> uni;
  T per_uni;  ///< 1 / uni.value
};

template <class T>
BOXLOSS_HOST_DEVICE Overlap<T> overlap(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                       const Eps<T>& eps) {
  Overlap<T> o;
  o.at = place(t, p);
  o.box = halves(p, t, o.at);
  o.edges = edges(o.box);
  o.inter = intersection_area(o.box, o.edges);
  o.uni = guard((area(p) + area(t)) - o.inter, eps);
  o.per_uni = reciprocal(o.uni.value);
  return o;
}

template <class T>
BOXLOSS_HOST_DEVICE T iou_of(const Overlap<T>& o) {
  return o.inter * o.per_uni;
}

/// 1 - iou. Of two ways to write it, the one that rounds the smaller part: it is exactly 0 for
/// equal boxes, and 1 for boxes that do not overlap.
template <class T>
BOXLOSS_HOST_DEVICE T iou_loss(const Overlap<T>& o) {
  const T iou = iou_of(o), rest = (o.uni.value - o.inter) * o.per_uni;
  return select(T(2) * iou < T(1), T(1) - iou, rest);
}

/// In the target's frame, from the derivatives by the union, which contains the intersection, and
/// by the intersection.
template <class T>
BOXLOSS_HOST_DEVICE PlacedDerivatives<T> through_overlap(const RotatedBox<T>& p,
                                                         const RotatedBox<T>& t,
                                                         const Overlap<T>& o, const T& by_uni,
                                                         const T& by_inter) {
  const T inter = select(o.inter > T(0), by_inter, T(0) * by_inter);
  PlacedDerivatives<T> d = inter * intersection_derivatives(p, o.at, o.box, o.edges);
  d.own_w = d.own_w + by_uni * t.h;
  d.own_h = d.own_h + by_uni * t.w;
  d.other_w = d.other_w + by_uni * p.h;
  d.other_h = d.other_h + by_uni * p.w;
  return d;
}

template <class T>
BOXLOSS_HOST_DEVICE RotatedPairGradient<T> to_gradient(const Overlap<T>& o, const T& loss,
                                                       const PlacedDerivatives<T>& by) {
  RotatedPairGradient<T> d;
  d.loss = loss;
  to_boxes(o.at, by, d.target, d.pred);
  return d;
}

}  // namespace boxloss::rotated
