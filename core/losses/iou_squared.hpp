// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "overlap.hpp"

namespace boxloss {

/// 1 - iou^2, YOLOX's.
struct IouSquared {
  static constexpr bool kUsesEnds = false;

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    const T iou = iou_of(overlap(p, t, eps));
    return T(1) - iou * iou;
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Eps<T>& eps) {
    Overlap<T> o = overlap(p, t, eps);
    const T iou = iou_of(o);
    return through_iou(p, t, o, eps, T(1) - iou * iou, T(-2) * iou);
  }
};

}  // namespace boxloss
