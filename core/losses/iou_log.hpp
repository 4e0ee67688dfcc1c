// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/functions.hpp"
#include "overlap.hpp"

namespace boxloss {

/// -log(max(iou, eps)): Yu et al., "UnitBox", 2016. Where iou is below eps there is no gradient.
/// Without eps, the loss of an empty intersection is infinite, and has no gradient either.
struct IouLog {
  static constexpr bool kUsesEnds = false;

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    return loss_of(iou_of(overlap(p, t, eps)), eps);
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Eps<T>& eps) {
    Overlap<T> o = overlap(p, t, eps);
    const T iou = iou_of(o);
    // Any finite derivative will do without overlap: an empty intersection has none.
    const T divisor = select(is_overlap(o.inter_w, o.inter_h), iou, T(1));
    const T by_iou = select(iou < eps.value, T(0), -reciprocal(divisor));
    return through_iou(p, t, o, eps, loss_of(iou, eps), by_iou);
  }

 private:
  /// Unlike at_least, with its whole gradient where iou is eps.
  template <class T>
  static BOXLOSS_HOST_DEVICE T clamped(const T& iou, const Eps<T>& eps) {
    return select(iou < eps.value, eps.value, iou);
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss_of(const T& iou, const Eps<T>& eps) {
    return -log(clamped(iou, eps));
  }
};

}  // namespace boxloss
