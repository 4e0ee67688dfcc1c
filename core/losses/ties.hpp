// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "math/host_device.hpp"

namespace boxloss {

/// How many halves of min(a, b) are a: 2, 0, or 1 where they tie, so that a gradient is shared half
/// and half. Halves, because a GPU turns a comparison into a number in one instruction.
template <class T>
BOXLOSS_HOST_DEVICE T halves_of_min(T a, T b) {
  return static_cast<T>(a < b) + static_cast<T>(a <= b);
}

}  // namespace boxloss
