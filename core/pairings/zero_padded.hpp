// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pairings/grid.hpp"

namespace boxloss {

/// A slot is valid unless its target's four values are all zero (-0 is zero, NaN is not).
struct ZeroPadded : Grid {
  using Grid::counts;
  template <class T>
  BOXLOSS_HOST_DEVICE bool counts(const Box<T>& target) const {
    return !(target.x1 == T(0) && target.y1 == T(0) && target.x2 == T(0) && target.y2 == T(0));
  }
};

}  // namespace boxloss
