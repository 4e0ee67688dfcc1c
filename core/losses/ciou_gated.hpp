// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ciou.hpp"

namespace boxloss {

/// CIoU as mmdetection has it: alpha = v / (1 - iou + v) where 2 I > U', else 0. Without eps, it is
/// 0 for equal boxes.
struct CiouGated : CiouWith<CiouGated> {
  template <class T>
  static BOXLOSS_HOST_DEVICE T alpha(const Overlap<T>& o, const T& v, const Eps<T>&) {
    const auto is_open = o.inter + o.inter > o.uni.value;
    return select(is_open, fraction(v, distance_and_aspect(o, v)), T(0));
  }
};

}  // namespace boxloss
