// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/functions.hpp"
#include "overlap.hpp"

namespace boxloss {

/// 1 - iou^alpha: He et al., "Alpha-IoU", NeurIPS 2021. Where iou is 0 there is no gradient.
struct AlphaIou {
  static constexpr bool kUsesEnds = false;
  static constexpr LossParameter kParameters[] = {{"alpha", 3}};

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Constants<T>& c) {
    return T(1) - power(iou_of(overlap(p, t, c)), c.own[0]);
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Constants<T>& c) {
    Overlap<T> o = overlap(p, t, c);
    const T iou = iou_of(o);
    const T result = power(iou, c.own[0]);
    const T divisor = select(iou < smallest_divisor<T>(), T(1), iou);
    const T by_iou = -c.own[0] * result * reciprocal(divisor);
    return through_iou(p, t, o, c, T(1) - result, by_iou);
  }

 private:
  /// 0 of 0, whose logarithm is infinite.
  template <class T>
  static BOXLOSS_HOST_DEVICE T power(const T& iou, const T& alpha) {
    return exp(alpha * log(iou));
  }
};

}  // namespace boxloss
