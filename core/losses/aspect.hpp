// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/arithmetic.hpp"
#include "../math/box.hpp"
#include "../math/functions.hpp"
#include "derivatives.hpp"
#include "eps.hpp"

/// CIoU's measure of how the shapes of two boxes differ: v = 4 / pi^2 (theta_t - theta_p)^2 with
/// theta = atan(w / h), which is +-pi/2 for h = 0, and 0 for a point.
namespace boxloss {

/// The direction (h, w) of a box, with h >= 0, or of a point, if w^2 + h^2 is next to 0, and the
/// derivatives of its angle theta.
template <class T>
struct Direction {
  T w, h, by_w, by_h;
};

template <class T>
BOXLOSS_HOST_DEVICE Direction<T> direction(const Box<T>& box) {
  const T w = box.x2 - box.x1, h = box.y2 - box.y1;
  const T square = w * w + h * h;
  const auto is_shape = square > smallest_divisor<T>();
  const T per = select(is_shape, reciprocal(select(is_shape, square, T(1))), T(0));
  const auto is_turned = h < T(0);
  return {select(is_shape, select(is_turned, -w, w), T(0)),
          select(is_shape, select(is_turned, -h, h), T(1)), h * per, -w * per};
}

/// theta_t - theta_p, as the angle between the two directions.
template <class T>
BOXLOSS_HOST_DEVICE T angle_between(const Direction<T>& p, const Direction<T>& t) {
  const T cross = t.w * p.h - p.w * t.h, dot = p.h * t.h + p.w * t.w;
  // Opposite directions of boxes without height are half a turn apart, either way.
  const T side = select(cross < T(0), T(-1), select(T(0) < cross, T(1), t.w));
  const T angle = atan2(select(side < T(0), -cross, cross), dot);
  return select(side < T(0), -angle, angle);
}

template <class T>
BOXLOSS_HOST_DEVICE T aspect_penalty(const T& angle) {
  return T(0.40528473456935109) * (angle * angle);  // 4 / pi^2
}

/// Adds the derivatives of alpha * v, alpha constant.
template <class T>
BOXLOSS_HOST_DEVICE void add_aspect(const Direction<T>& p, const Direction<T>& t, const T& angle,
                                    const T& alpha, Derivatives<T>& d) {
  const T by_theta = T(0.81056946913870217) * (alpha * angle);  // 8 / pi^2
  d.x.t_side = d.x.t_side + by_theta * t.by_w;
  d.y.t_side = d.y.t_side + by_theta * t.by_h;
  d.x.p_side = d.x.p_side - by_theta * p.by_w;
  d.y.p_side = d.y.p_side - by_theta * p.by_h;
}

}  // namespace boxloss
