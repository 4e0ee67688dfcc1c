// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/arithmetic.hpp"
#include "../math/box.hpp"
#include "../math/host_device.hpp"
#include "eps.hpp"
#include "ties.hpp"

/// A formula's gradient, given by lengths along each axis (sides, distance of the centres). The
/// conversion to coordinates is the same for all formulas.
namespace boxloss {

/// Derivatives of the loss along one axis.
template <class T>
struct AxisDerivatives {
  T p_side, t_side;  ///< by the boxes' sides
  T inter;           ///< by the intersection's side
  T enclosing;       ///< by the enclosure's
  T begin, end;      ///< by how far the target's begin, or its end, lies beyond pred's
};

template <class T>
struct Derivatives {
  T loss;
  AxisDerivatives<T> x, y;
};

/// The smallest box that holds both.
template <class T>
struct Enclosure {
  T w, h;
};

template <class T>
BOXLOSS_HOST_DEVICE Enclosure<T> enclosure(const Box<T>& p, const Box<T>& t) {
  return {larger(p.x2, t.x2) - smaller(p.x1, t.x1), larger(p.y2, t.y2) - smaller(p.y1, t.y1)};
}

/// Derivatives by lengths to derivatives by coordinates, for one axis. A tie of min or max is split
/// in halves.
template <class T>
BOXLOSS_HOST_DEVICE void to_coordinates(const AxisDerivatives<T>& by, T p1, T p2, T t1, T t2,
                                        T& d_p1, T& d_p2, T& d_t1, T& d_t2) {
  const T min1_is_p = halves_of_min(p1, t1);
  const T min2_is_p = halves_of_min(p2, t2);
  const T min1_is_t = T(2) - min1_is_p;
  const T min2_is_t = T(2) - min2_is_p;
  const T half_inter = T(0.5) * by.inter;
  const T half_enclosing = T(0.5) * by.enclosing;
  d_p1 = -(by.p_side + half_inter * min1_is_t + half_enclosing * min1_is_p);
  d_t1 = -(by.t_side + half_inter * min1_is_p + half_enclosing * min1_is_t);
  d_p2 = by.p_side + half_inter * min2_is_p + half_enclosing * min2_is_t;
  d_t2 = by.t_side + half_inter * min2_is_t + half_enclosing * min2_is_p;
}

/// The same for the distances of the ends.
template <class T>
BOXLOSS_HOST_DEVICE void add_ends(const AxisDerivatives<T>& by, T& d_p1, T& d_p2, T& d_t1,
                                  T& d_t2) {
  d_p1 = d_p1 - by.begin;
  d_p2 = d_p2 - by.end;
  d_t1 = d_t1 + by.begin;
  d_t2 = d_t2 + by.end;
}

/// Adds a derivative by how far the target's centre lies beyond pred's.
template <class T>
BOXLOSS_HOST_DEVICE void add_centre(T by_centre, AxisDerivatives<T>& d) {
  const T half = T(0.5) * by_centre;
  d.begin = d.begin + half;
  d.end = d.end + half;
}

/// The loss of a formula and its derivatives by all eight coordinates.
template <class Formula, class T>
BOXLOSS_HOST_DEVICE PairGradient<T> gradient(const Formula& formula, const Box<T>& p,
                                             const Box<T>& t, const Constants<T>& c) {
  Derivatives<T> by = formula.derivatives(p, t, c);
  PairGradient<T> d;
  d.loss = by.loss;
  to_coordinates(by.x, p.x1, p.x2, t.x1, t.x2, d.pred.x1, d.pred.x2, d.target.x1, d.target.x2);
  to_coordinates(by.y, p.y1, p.y2, t.y1, t.y2, d.pred.y1, d.pred.y2, d.target.y1, d.target.y2);
  if constexpr (Formula::kUsesEnds) {
    add_ends(by.x, d.pred.x1, d.pred.x2, d.target.x1, d.target.x2);
    add_ends(by.y, d.pred.y1, d.pred.y2, d.target.y1, d.target.y2);
  }
  return d;
}

}  // namespace boxloss
