// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/anchor_level.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../math/box.hpp"
#include "../math/host_device.hpp"

/// Which cells of a level a box can touch. What a level's anchors reach beyond their cells' origins
/// is found from the anchors first, so the answer is right whatever they are: for anchors that lie
/// elsewhere it is only longer.
namespace boxloss {

constexpr double kEndless = std::numeric_limits<double>::infinity();

/// How far anchors extend from the origins of their cells (column * stride_x, row * stride_y); the
/// first two are usually negative. At first, of no anchor.
struct Reach {
  double left = kEndless, up = kEndless, right = -kEndless, down = -kEndless;
};

/// The reach of anchors that may be anywhere: every box touches every cell.
BOXLOSS_HOST_DEVICE Reach reach_everywhere() { return {-kEndless, -kEndless, kEndless, kEndless}; }

/// Adds an anchor of a cell; of a point, the same one twice. NaN reaches everywhere.
template <class T>
BOXLOSS_HOST_DEVICE void add_to_reach(Reach& reach, const AnchorLevel& level, std::int64_t row,
                                      std::int64_t column, const Box<T>& anchor) {
  const double x = static_cast<double>(column) * level.stride_x;
  const double y = static_cast<double>(row) * level.stride_y;
  const double left = anchor.x1 - x, up = anchor.y1 - y;
  const double right = anchor.x2 - x, down = anchor.y2 - y;
  if (!(left - left + up - up + right - right + down - down == 0)) {
    reach = reach_everywhere();
    return;
  }
  if (left < reach.left) reach.left = left;
  if (up < reach.up) reach.up = up;
  if (right > reach.right) reach.right = right;
  if (down > reach.down) reach.down = down;
}

/// Rows or columns of cells, from begin to end.
struct CellRange {
  std::int64_t begin, end;
};

/// Those of `count`, `stride` apart, whose anchors, which reach from `before` to `behind` their
/// origin, can touch the interval from `low` to `high`. NaN touches all.
BOXLOSS_HOST_DEVICE CellRange cells_near(double low, double high, double before, double behind,
                                         double stride, std::int64_t count) {
  // No anchor may be lost to rounding: of a multiple of the stride, the reach, and what is computed
  // from them here, six roundings at most, each of a number below this sum.
  const double cells = static_cast<double>(count);
  const double slack = 0x1p-50 * (std::fabs(low) + std::fabs(high) + std::fabs(before) +
                                  std::fabs(behind) + cells * stride);
  const double first = std::ceil((low - behind - slack) / stride);
  const double last = std::floor((high - before + slack) / stride);
  CellRange range = {0, count};
  if (first > 0) range.begin = first < cells ? static_cast<std::int64_t>(first) : count;
  if (last < cells - 1) range.end = last >= 0 ? static_cast<std::int64_t>(last) + 1 : 0;
  if (range.end < range.begin) range.end = range.begin;
  return range;
}

/// The columns of a level whose anchors a box can touch.
template <class T>
BOXLOSS_HOST_DEVICE CellRange columns_near(const AnchorLevel& level, const Reach& reach,
                                           const Box<T>& box) {
  return cells_near(box.x1, box.x2, reach.left, reach.right, level.stride_x, level.columns);
}

/// The rows, likewise.
template <class T>
BOXLOSS_HOST_DEVICE CellRange rows_near(const AnchorLevel& level, const Reach& reach,
                                        const Box<T>& box) {
  return cells_near(box.y1, box.y2, reach.up, reach.down, level.stride_y, level.rows);
}

}  // namespace boxloss
