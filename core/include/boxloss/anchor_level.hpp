// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/export.hpp>
#include <cstdint>

namespace boxloss {

/// Neighbours in a list of anchors, which lie on a grid: those of cell (row, column) begin at first
/// + (row * columns + column) * per_cell, and are near (column * stride_x, row * stride_y). How far
/// they really lie from there is read from the anchors, so that strides which are not theirs cost
/// time, but change no result.
struct AnchorLevel {
  std::int64_t first = 0, rows = 0, columns = 0, per_cell = 1;
  double stride_y = 0, stride_x = 0;
};

/// The most that a list of anchors has.
constexpr int kMostLevels = 16;

/// All levels of a list of anchors, one behind the other; without any, nothing is known of where
/// they lie.
struct AnchorLevels {
  int count = 0;
  AnchorLevel level[kMostLevels] = {};
};

/// Throws InvalidArgument unless the levels are those of so many anchors, or there are none.
BOXLOSS_API void check_levels(const AnchorLevels& levels, std::int64_t anchors);

}  // namespace boxloss
