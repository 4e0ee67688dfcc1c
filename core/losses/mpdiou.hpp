// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distance.hpp"
#include "overlap.hpp"

namespace boxloss {

/// Minimum point distance: Ma and Xu, "MPDIoU", 2023. With the distances d_1 and d_2 of the boxes'
/// two corners,
///   loss = 1 - iou + (d_1^2 + d_2^2) / (image_width^2 + image_height^2).
struct Mpdiou {
  static constexpr bool kUsesEnds = true;
  static constexpr LossParameter kParameters[] = {{"image_width", 0}, {"image_height", 0}};

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Constants<T>& c) {
    const T iou = iou_of(overlap(p, t, c));
    return (T(1) - iou) + corner_distance(p, t).square * per_image(c);
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Constants<T>& c) {
    Overlap<T> o = overlap(p, t, c);
    CornerDistance<T> corners = corner_distance(p, t);
    const T per = per_image(c);
    const T loss = (T(1) - iou_of(o)) + corners.square * per;
    Derivatives<T> d = through_iou(p, t, o, c, loss, T(-1));
    add_corners(corners, T(2) * per, d);
    return d;
  }

 private:
  template <class T>
  static BOXLOSS_HOST_DEVICE T per_image(const Constants<T>& c) {
    return reciprocal(c.own[0] * c.own[0] + c.own[1] * c.own[1]);
  }
};

}  // namespace boxloss
