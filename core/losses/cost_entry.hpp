// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/host_device.hpp"
#include "../math/rotated_box.hpp"
#include "../math/sin_cos.hpp"

/// An entry of a matcher's cost, from its three terms. For a term that is left out pass a loss of
/// 1, or 0 for the others.
namespace boxloss {

template <class T>
struct CostWeights {
  T iou, l1, class_term;
};

template <class T>
BOXLOSS_HOST_DEVICE T cost_entry(const CostWeights<T>& weights, const T& loss, const T& l1,
                                 const T& class_term) {
  return weights.iou * (loss - T(1)) + weights.l1 * l1 + weights.class_term * class_term;
}

/// 1 - cos(2d), d being the difference of the angles, as 2 sin(d)^2, which loses no digits where
/// they are nearly equal. Half a turn is a period, as it is a box': |d| would jump where one of two
/// equal boxes is given the other end of the angles' range.
template <class T>
BOXLOSS_HOST_DEVICE T angle_cost(const RotatedBox<T>& p, const RotatedBox<T>& t) {
  const T sine = sin_cos(p.angle - t.angle).sin;
  return T(2) * (sine * sine);
}

}  // namespace boxloss
