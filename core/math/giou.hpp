// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/giou_loss.hpp>
#include <limits>

#include "math/arithmetic.hpp"
#include "math/box.hpp"
#include "math/host_device.hpp"

/// Generalized IoU loss: Rezatofighi et al., "Generalized Intersection over Union", CVPR 2019.
/// With U' and C' the union and the enclosing area after eps, both eps modes are
///   giou = I / U' - (C' - U') / C'.
namespace boxloss {

/// Both modes as one expression, max(area + added, floor), so that no loop has to branch on the
/// mode.
template <class T>
struct Eps {
  T added, floor;
};

/// eps rounded to T.
template <class T>
Eps<T> make_eps(double eps, EpsMode mode) {
  if (mode == EpsMode::kAdd) return {static_cast<T>(eps), -std::numeric_limits<T>::infinity()};
  return {T(0), static_cast<T>(eps)};
}

/// An area after eps, and its derivative with respect to the area.
template <class T>
struct Guarded {
  T value;
  T slope;
};

/// Written with a comparison that NaN fails, so that NaN stays NaN (fmax would drop it).
template <class T>
BOXLOSS_HOST_DEVICE Guarded<T> guard(T area, const Eps<T>& eps) {
  const T value = area + eps.added;
  return {value < eps.floor ? eps.floor : value, T(0.5) * halves_of_min(eps.floor, value)};
}

/// The pieces that the loss and its gradient share.
template <class T>
struct GiouTerms {
  T inter_w, inter_h, inter;
  T enclosing_w, enclosing_h;
  Guarded<T> uni, enclosing;
  T per_uni, per_enclosing;  ///< their reciprocals
};

template <class T>
BOXLOSS_HOST_DEVICE GiouTerms<T> giou_terms(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
  GiouTerms<T> g;
  g.inter_w = smaller(p.x2, t.x2) - larger(p.x1, t.x1);
  g.inter_h = smaller(p.y2, t.y2) - larger(p.y1, t.y1);
  g.inter = g.inter_w > T(0) && g.inter_h > T(0) ? g.inter_w * g.inter_h : T(0);
  g.enclosing_w = larger(p.x2, t.x2) - smaller(p.x1, t.x1);
  g.enclosing_h = larger(p.y2, t.y2) - smaller(p.y1, t.y1);
  g.uni = guard(area(p) + area(t) - g.inter, eps);
  g.enclosing = guard(g.enclosing_w * g.enclosing_h, eps);
  g.per_uni = reciprocal(g.uni.value);
  g.per_enclosing = reciprocal(g.enclosing.value);
  return g;
}

template <class T>
BOXLOSS_HOST_DEVICE T giou_loss(const GiouTerms<T>& g) {
  const T giou = g.inter * g.per_uni - (g.enclosing.value - g.uni.value) * g.per_enclosing;
  return T(1) - giou;
}

/// The formula as backends take it: what is computed for one pair of corner boxes.
struct Giou {
  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    return giou_loss(giou_terms(p, t, eps));
  }

  /// Derivatives of the loss with respect to the corners of both boxes. A tie of min or max is
  /// shared half and half; an intersection that is empty or only touches has no gradient.
  template <class T>
  static BOXLOSS_HOST_DEVICE PairGradient<T> gradient(const Box<T>& p, const Box<T>& t,
                                                      const Eps<T>& eps) {
    const GiouTerms<T> g = giou_terms(p, t, eps);
    // Of the loss: by the union, by the intersection (which the union contains), by the enclosure.
    const T by_uni = g.uni.slope * (g.inter * g.per_uni * g.per_uni - g.per_enclosing);
    const bool overlap = g.inter_w > T(0) && g.inter_h > T(0);
    const T by_inter = overlap ? -g.per_uni - by_uni : T(0);
    const T by_enclosing = g.enclosing.slope * (g.uni.value * g.per_enclosing * g.per_enclosing);

    PairGradient<T> d;
    d.loss = giou_loss(g);
    const T half_inter = T(0.5) * by_inter;
    const T half_enclosing = T(0.5) * by_enclosing;
    axis_gradient(p.x1, p.x2, t.x1, t.x2, by_uni * (p.y2 - p.y1), by_uni * (t.y2 - t.y1),
                  half_inter * g.inter_h, half_enclosing * g.enclosing_h, d.pred.x1, d.pred.x2,
                  d.target.x1, d.target.x2);
    axis_gradient(p.y1, p.y2, t.y1, t.y2, by_uni * (p.x2 - p.x1), by_uni * (t.x2 - t.x1),
                  half_inter * g.inter_w, half_enclosing * g.enclosing_w, d.pred.y1, d.pred.y2,
                  d.target.y1, d.target.y2);
    return d;
  }

 private:
  /// One axis: derivatives by each box's side, and half of those by the intersection's and by the
  /// enclosure's side, are handed to the four coordinates that make those sides.
  template <class T>
  static BOXLOSS_HOST_DEVICE void axis_gradient(T p1, T p2, T t1, T t2, T by_p, T by_t,
                                                T half_inter, T half_enclosing, T& d_p1, T& d_p2,
                                                T& d_t1, T& d_t2) {
    const T min1_is_p = halves_of_min(p1, t1);
    const T min2_is_p = halves_of_min(p2, t2);
    const T min1_is_t = T(2) - min1_is_p;
    const T min2_is_t = T(2) - min2_is_p;
    d_p1 = -(by_p + half_inter * min1_is_t + half_enclosing * min1_is_p);
    d_t1 = -(by_t + half_inter * min1_is_p + half_enclosing * min1_is_t);
    d_p2 = by_p + half_inter * min2_is_p + half_enclosing * min2_is_t;
    d_t2 = by_t + half_inter * min2_is_t + half_enclosing * min2_is_p;
  }
};

}  // namespace boxloss
