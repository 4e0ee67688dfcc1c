// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "losses/derivatives.hpp"
#include "math/arithmetic.hpp"
#include "math/box.hpp"
#include "math/functions.hpp"

/// How the shapes of two boxes differ, as CIoU has it: v = 4 / pi^2 (theta_t - theta_p)^2 with
/// theta = atan(w / h), which is +-pi/2 for h = 0, and 0 for a point.
namespace boxloss {

/// Where w^2 + h^2 is below, its reciprocal would overflow, and an angle has no derivative.
template <class T>
BOXLOSS_HOST_DEVICE T smallest_square() {
  return T(1e-37);
}

template <class T>
BOXLOSS_HOST_DEVICE T aspect_angle(const T& w, const T& h) {
  return atan2(select(h < T(0), -w, w), select(h < T(0), -h, h));
}

template <class T>
BOXLOSS_HOST_DEVICE T aspect_difference(const Box<T>& p, const Box<T>& t) {
  return aspect_angle(t.x2 - t.x1, t.y2 - t.y1) - aspect_angle(p.x2 - p.x1, p.y2 - p.y1);
}

template <class T>
BOXLOSS_HOST_DEVICE T aspect_penalty(const T& difference) {
  return T(0.40528473456935109) * (difference * difference);  // 4 / pi^2
}

/// Adds the derivatives of alpha * v, alpha constant.
template <class T>
BOXLOSS_HOST_DEVICE void add_aspect(const Box<T>& p, const Box<T>& t, const T& difference,
                                    const T& alpha, Derivatives<T>& d) {
  const T by_theta = T(0.81056946913870217) * (alpha * difference);  // 8 / pi^2
  const auto add = [&](const Box<T>& box, const T& by, T& by_w, T& by_h) {
    const T w = box.x2 - box.x1, h = box.y2 - box.y1;
    const T square = w * w + h * h;
    const auto is_shape = square > smallest_square<T>();
    const T per = reciprocal(select(is_shape, square, T(1)));
    by_w = by_w + by * select(is_shape, h * per, T(0));
    by_h = by_h - by * select(is_shape, w * per, T(0));
  };
  add(t, by_theta, d.x.t_side, d.y.t_side);
  add(p, -by_theta, d.x.p_side, d.y.p_side);
}

}  // namespace boxloss
