// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distance.hpp"

namespace boxloss {

/// Distance IoU loss: Zheng et al., "Distance-IoU Loss", AAAI 2020. With the distance of the
/// centres rho and the diagonal of the enclosure c,
///   loss = 1 - iou + rho^2 / c^2'.
struct Diou {
  static constexpr bool kUsesEnds = true;

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
    return diou_terms(p, t, eps).loss;
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Eps<T>& eps) {
    return diou_derivatives(p, t, eps, diou_terms(p, t, eps));
  }
};

}  // namespace boxloss
