// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/anchor_level.hpp>

#include "src/checks.hpp"

namespace boxloss {
namespace {

/// Positive and finite; false for NaN.
bool is_stride(double value) { return value > 0 && value <= std::numeric_limits<double>::max(); }

}  // namespace

void check_levels(const AnchorLevels& levels, std::int64_t anchors) {
  check(levels.count >= 0 && levels.count <= kMostLevels, "there are ", levels.count,
        " levels; there can be ", kMostLevels);
  std::int64_t end = 0;
  for (int i = 0; i < levels.count; ++i) {
    const AnchorLevel& level = levels.level[i];
    check(level.first == end, "levels[", i, "] begins with anchor ", level.first,
          "; it must begin with ", end, ", behind those before it");
    check(level.rows > 0 && level.columns > 0 && level.per_cell > 0, "levels[", i, "] has ",
          level.rows, " rows, ", level.columns, " columns and ", level.per_cell,
          " anchors per cell; each must be at least 1");
    check(is_stride(level.stride_y) && is_stride(level.stride_x), "levels[", i, "] has strides ",
          level.stride_y, " and ", level.stride_x, "; they must be finite and more than 0");
    const std::int64_t left = anchors - end;
    check(level.rows <= left / level.columns / level.per_cell, "levels[", i, "] has ", level.rows,
          " rows of ", level.columns, " cells of ", level.per_cell, " anchors, but only ", left,
          " anchors are left");
    end += level.rows * level.columns * level.per_cell;
  }
  check(levels.count == 0 || end == anchors, "levels have ", end, " anchors, but there are ",
        anchors);
}

}  // namespace boxloss
