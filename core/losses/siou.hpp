// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/functions.hpp"
#include "distance.hpp"
#include "eps.hpp"

namespace boxloss {

/// SCYLLA IoU loss: Gevorgyan, "SIoU Loss", 2022, as YOLOv6 has it. With the distance of the
/// centres s = target - pred + eps, and the enclosure's sides c,
///   loss = 1 - iou + (D + S) / 2
///   D = 2 - sum over both axes of exp((Lambda - 2) (s / c)^2)
///   Lambda = 2 |s_x s_y| / (s_x^2 + s_y^2), which is cos(2 asin(...) - pi / 2) without them
///   S = sum over both sides of (1 - exp(-|a - b| / max(|a|, |b|)))^4
struct Siou {
  static constexpr bool kUsesEnds = true;

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    Overlap<T> o = overlap(p, t, eps);
    Angle<T> angle = angle_cost(p, t, eps);
    Enclosure<T> e = enclosure(p, t);
    Distance<T> x = distance(angle.s_x, e.w, angle.lambda, eps);
    Distance<T> y = distance(angle.s_y, e.h, angle.lambda, eps);
    return sum(o, x, y, shape(p.x2 - p.x1, t.x2 - t.x1), shape(p.y2 - p.y1, t.y2 - t.y1));
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Eps<T>& eps) {
    Overlap<T> o = overlap(p, t, eps);
    Angle<T> angle = angle_cost(p, t, eps);
    Enclosure<T> e = enclosure(p, t);
    Distance<T> x = distance(angle.s_x, e.w, angle.lambda, eps);
    Distance<T> y = distance(angle.s_y, e.h, angle.lambda, eps);
    Shape<T> w = shape(p.x2 - p.x1, t.x2 - t.x1);
    Shape<T> h = shape(p.y2 - p.y1, t.y2 - t.y1);
    Derivatives<T> d = through_iou(p, t, o, eps, sum(o, x, y, w, h), T(-1));
    add_shape(w, p.x2 - p.x1, t.x2 - t.x1, d.x);
    add_shape(h, p.y2 - p.y1, t.y2 - t.y1, d.y);
    // D contains minus each exponential, and the loss half of D.
    const T by_lambda = T(-0.5) * (x.power * x.square + y.power * y.square);
    add_distance(x, e.w, angle.lambda, eps, d.x);
    add_distance(y, e.h, angle.lambda, eps, d.y);
    add_centre(by_lambda * lambda_by(angle, angle.s_x, angle.s_y), d.x);
    add_centre(by_lambda * lambda_by(angle, angle.s_y, angle.s_x), d.y);
    return d;
  }

 private:
  template <class T>
  struct Angle {
    T s_x, s_y;
    T per_square;  ///< 1 / (s_x^2 + s_y^2), 0 where there is no angle
    T lambda;
  };

  template <class T>
  static BOXLOSS_HOST_DEVICE Angle<T> angle_cost(const Box<T>& p, const Box<T>& t,
                                                 const Eps<T>& eps) {
    CentreDistance<T> c = centre_distance(p, t);
    const T s_x = c.x + eps.value, s_y = c.y + eps.value;
    const T square = s_x * s_x + s_y * s_y;
    const auto is_angle = square > smallest_divisor<T>();
    const T per = select(is_angle, reciprocal(select(is_angle, square, T(1))), T(0));
    return {s_x, s_y, per, T(2) * magnitude(s_x * s_y) * per};
  }

  /// Not l1.hpp's, for which NaN stays NaN: here what it is multiplied with is NaN already.
  template <class T>
  static BOXLOSS_HOST_DEVICE T sign(const T& value) {
    return select(value > T(0), T(1), select(value < T(0), T(-1), T(0)));
  }

  /// The derivative of Lambda by s, one of the two offsets; `other` is the other one.
  template <class T>
  static BOXLOSS_HOST_DEVICE T lambda_by(const Angle<T>& angle, const T& s, const T& other) {
    return T(2) * sign(s) * (magnitude(other) - angle.lambda * magnitude(s)) * angle.per_square;
  }

  /// One axis' exponential. Beyond a ratio of 64 it is 0.
  template <class T>
  struct Distance {
    T ratio, per_side, square, power;
  };

  /// The lower bound of the enclosure's side: eps, and large enough that no ratio overflows.
  template <class T>
  static BOXLOSS_HOST_DEVICE T floor_of(const Eps<T>& eps) {
    return at_least(eps.value, T(1e-28));
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Distance<T> distance(const T& s, const T& enclosing, const T& lambda,
                                                  const Eps<T>& eps) {
    const T per_side = reciprocal(at_least(enclosing, floor_of(eps)));
    const T ratio = larger(smaller(s * per_side, T(64)), T(-64));
    const T square = ratio * ratio;
    return {ratio, per_side, square, exp((lambda - T(2)) * square)};
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE void add_distance(const Distance<T>& r, const T& enclosing,
                                               const T& lambda, const Eps<T>& eps,
                                               AxisDerivatives<T>& d) {
    // Half of D by the ratio is this times the ratio.
    const T by_ratio = (T(2) - lambda) * r.power;
    add_centre(by_ratio * r.ratio * r.per_side, d);
    const T by_floor = T(0.5) * halves_of_min(floor_of(eps), enclosing);
    d.enclosing = d.enclosing - by_floor * (by_ratio * r.square) * r.per_side;
  }

  /// One side's share of S.
  template <class T>
  struct Shape {
    T difference, per_larger, ratio, power, value;
  };

  template <class T>
  static BOXLOSS_HOST_DEVICE Shape<T> shape(const T& a, const T& b) {
    const T most = larger(magnitude(a), magnitude(b));
    const auto is_side = most > smallest_divisor<T>();
    const T per = select(is_side, reciprocal(select(is_side, most, T(1))), T(0));
    const T ratio = magnitude(a - b) * per;
    const T power = exp(-ratio);
    const T square = (T(1) - power) * (T(1) - power);
    return {a - b, per, ratio, power, square * square};
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE void add_shape(const Shape<T>& s, const T& a, const T& b,
                                            AxisDerivatives<T>& d) {
    const T rest = T(1) - s.power;
    const T by_ratio = T(0.5) * (T(4) * rest * rest * rest * s.power);
    const T by_difference = by_ratio * sign(s.difference) * s.per_larger;
    const T by_larger = -by_ratio * s.ratio * s.per_larger;
    const T larger_is_b = T(0.5) * halves_of_min(magnitude(a), magnitude(b));
    d.p_side = d.p_side + by_difference + by_larger * (T(1) - larger_is_b) * sign(a);
    d.t_side = d.t_side - by_difference + by_larger * larger_is_b * sign(b);
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE T sum(const Overlap<T>& o, const Distance<T>& x, const Distance<T>& y,
                                   const Shape<T>& w, const Shape<T>& h) {
    const T distance_cost = (T(1) - x.power) + (T(1) - y.power);
    return (T(1) - iou_of(o)) + T(0.5) * (distance_cost + (w.value + h.value));
  }
};

}  // namespace boxloss
