// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "losses/eps.hpp"
#include "losses/ties.hpp"
#include "math/arithmetic.hpp"
#include "math/box.hpp"
#include "math/host_device.hpp"

/// How two boxes lie to each other: what the formulas of the family share, and how derivatives by
/// it become derivatives by coordinates.
namespace boxloss {

/// The intersection, empty where the boxes only touch, and the union after eps.
template <class T>
struct Overlap {
  T inter_w, inter_h, inter;
  Guarded<T> uni;
  T per_uni;  ///< 1 / uni.value
};

/// Do the boxes share more than an edge?
template <class T>
BOXLOSS_HOST_DEVICE auto is_overlap(const T& inter_w, const T& inter_h) {
  return both(inter_w > T(0), inter_h > T(0));
}

template <class T>
BOXLOSS_HOST_DEVICE Overlap<T> overlap(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
  const T w = smaller(p.x2, t.x2) - larger(p.x1, t.x1);
  const T h = smaller(p.y2, t.y2) - larger(p.y1, t.y1);
  const T inter = select(is_overlap(w, h), w * h, T(0));
  const Guarded<T> uni = guard(area(p) + area(t) - inter, eps);
  return {w, h, inter, uni, reciprocal(uni.value)};
}

/// The smallest box that holds both.
template <class T>
struct Enclosure {
  T w, h;
};

template <class T>
BOXLOSS_HOST_DEVICE Enclosure<T> enclosure(const Box<T>& p, const Box<T>& t) {
  return {larger(p.x2, t.x2) - smaller(p.x1, t.x1), larger(p.y2, t.y2) - smaller(p.y1, t.y1)};
}

/// One axis: derivatives by each box's side, and half of those by the intersection's and by the
/// enclosure's side, are handed to the four coordinates that make those sides.
template <class T>
BOXLOSS_HOST_DEVICE void axis_gradient(T p1, T p2, T t1, T t2, T by_p, T by_t, T half_inter,
                                       T half_enclosing, T& d_p1, T& d_p2, T& d_t1, T& d_t2) {
  const T min1_is_p = halves_of_min(p1, t1);
  const T min2_is_p = halves_of_min(p2, t2);
  const T min1_is_t = T(2) - min1_is_p;
  const T min2_is_t = T(2) - min2_is_p;
  d_p1 = -(by_p + half_inter * min1_is_t + half_enclosing * min1_is_p);
  d_t1 = -(by_t + half_inter * min1_is_p + half_enclosing * min1_is_t);
  d_p2 = by_p + half_inter * min2_is_p + half_enclosing * min2_is_t;
  d_t2 = by_t + half_inter * min2_is_t + half_enclosing * min2_is_p;
}

}  // namespace boxloss
