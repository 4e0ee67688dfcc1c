// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "overlap.hpp"

/// Losses of the intersection over union alone, iou = I / U'. Disjoint boxes have no gradient.
namespace boxloss {

/// 1 - iou.
struct Iou {
  static constexpr bool kUsesEnds = false;

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    return T(1) - iou_of(overlap(p, t, eps));
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Eps<T>& eps) {
    Overlap<T> o = overlap(p, t, eps);
    return through_iou(p, t, o, eps, T(1) - iou_of(o), T(-1));
  }
};

}  // namespace boxloss
