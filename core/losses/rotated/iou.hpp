// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "overlap.hpp"

namespace boxloss::rotated {

/// 1 - I / U', U' the union after eps. Boxes that do not overlap have no gradient by their
/// position.
struct Iou {
  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const RotatedBox<T>& p, const RotatedBox<T>& t,
                                    const Eps<T>& eps) {
    return iou_loss(overlap(p, t, eps));
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE RotatedPairGradient<T> derivatives(const RotatedBox<T>& p,
                                                                const RotatedBox<T>& t,
                                                                const Eps<T>& eps) {
    Overlap<T> o = overlap(p, t, eps);
    const T by_uni = slope(o.uni, eps) * (o.inter * o.per_uni * o.per_uni);
    return to_gradient(o, iou_loss(o), through_overlap(p, t, o, by_uni, -o.per_uni - by_uni));
  }
};

}  // namespace boxloss::rotated
