// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "overlap.hpp"

namespace boxloss {

/// 1 - iou of both boxes with sides `ratio` times as long about their centres: Zhang et al.,
/// "Inner-IoU", 2023.
struct InnerIou {
  static constexpr bool kUsesEnds = true;
  static constexpr LossParameter kParameters[] = {{"ratio", 0}};

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Constants<T>& c) {
    return T(1) - iou_of(overlap(inner(p, c.own[0]), inner(t, c.own[0]), c));
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Constants<T>& c) {
    const T ratio = c.own[0];
    Box<T> in_p = inner(p, ratio), in_t = inner(t, ratio);
    Overlap<T> o = overlap(in_p, in_t, c);
    Derivatives<T> d = through_iou(in_p, in_t, o, c, T(1) - iou_of(o), T(-1));
    to_outer(ratio, in_p.x1, in_p.x2, in_t.x1, in_t.x2, d.x);
    to_outer(ratio, in_p.y1, in_p.y2, in_t.y1, in_t.y2, d.y);
    return d;
  }

 private:
  template <class T>
  static BOXLOSS_HOST_DEVICE Box<T> inner(const Box<T>& b, const T& ratio) {
    const T x = T(0.5) * (b.x1 + b.x2), half_w = T(0.5) * ratio * (b.x2 - b.x1);
    const T y = T(0.5) * (b.y1 + b.y2), half_h = T(0.5) * ratio * (b.y2 - b.y1);
    return {x - half_w, y - half_h, x + half_w, y + half_h};
  }

  /// Derivatives by lengths of inner boxes, whose coordinates are given, to those of the boxes. The
  /// ends of the intersection are inner ones, and move with the centres and half of the sides.
  template <class T>
  static BOXLOSS_HOST_DEVICE void to_outer(const T& ratio, const T& p1, const T& p2, const T& t1,
                                           const T& t2, AxisDerivatives<T>& d) {
    const T begins_at_t = halves_of_min(p1, t1), ends_at_p = halves_of_min(p2, t2);
    const T begins_at_p = T(2) - begins_at_t, ends_at_t = T(2) - ends_at_p;
    const T quarter = T(0.25) * d.inter;
    d.p_side = ratio * (d.p_side + quarter * (begins_at_p + ends_at_p));
    d.t_side = ratio * (d.t_side + quarter * (begins_at_t + ends_at_t));
    add_centre(T(2) * quarter * (ends_at_t - begins_at_t), d);
    d.inter = T(0);
  }
};

}  // namespace boxloss
