// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pairings/grid.hpp"

namespace boxloss {

/// The first lengths[b] slots of image b are valid.
struct Lengths : Grid {
  Indices lengths;

  BOXLOSS_HOST_DEVICE ImageSlots image(std::int64_t b) const {
    return {clamp(lengths[b], 0, slots), 0, b * slots};
  }
};

}  // namespace boxloss
