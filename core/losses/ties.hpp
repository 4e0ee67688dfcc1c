// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/host_device.hpp"

namespace boxloss {

/// Twice the share of a in the gradient of min(a, b): 2 if a is smaller, 0 if b is, 1 at a tie, so
/// that a tie splits the gradient in halves. Doubled because a GPU converts a comparison to an
/// integer in one instruction.
template <class T>
BOXLOSS_HOST_DEVICE T halves_of_min(T a, T b) {
  return static_cast<T>(a < b) + static_cast<T>(a <= b);
}

}  // namespace boxloss
