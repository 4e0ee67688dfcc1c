// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pairings/grid.hpp"

namespace boxloss {

/// A slot is valid where the mask is true.
struct Mask : Grid {
  const std::uint8_t* mask;

  using Grid::counts;
  BOXLOSS_HOST_DEVICE bool counts(std::int64_t row) const { return mask[row] != 0; }
};

}  // namespace boxloss
