// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace boxloss::native {

/// An index for each pair: `first + k * step` for neighbours, otherwise from a list.
struct Places {
  std::int64_t first, step;
  const std::int64_t* list;

  std::int64_t operator[](int k) const { return list != nullptr ? list[k] : first + k * step; }
  Places from(int k) const {
    return {first + k * step, step, list != nullptr ? list + k : nullptr};
  }
  bool are_neighbours() const { return list == nullptr && step == 1; }
};

}  // namespace boxloss::native
