// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "../math/box.hpp"
#include "../math/ceil_div.hpp"
#include "../math/host_device.hpp"
#include "../math/rotated_box.hpp"
#include "indices.hpp"

/// A pairing tells which slots are valid. It is a plain struct that answers, for image b:
///   image(b)        which slots may be valid, and where their targets and rows lie
///   rows(b)         which rows belong to the image, valid or not
///   counts(row)     is this slot valid, as far as can be told without reading boxes?
///   counts(target)  is it valid, given the target's raw values?
/// A row is an index into the unreduced loss, the weight and the target's gradient.
namespace boxloss {

/// Slots [0, count) of an image. Slot j is paired with target slot `target` + j; its row is `row` +
/// j.
struct ImageSlots {
  std::int64_t count, target, row;
};

struct RowRange {
  std::int64_t begin, end;
};

/// One worker's part of rows that several share evenly.
BOXLOSS_HOST_DEVICE RowRange share_of(const RowRange& rows, std::int64_t index,
                                      std::int64_t parts) {
  const std::int64_t count = rows.end - rows.begin;
  if (count <= 0 || parts == 1) return rows;
  const std::int64_t each = ceil_div(count, parts);
  const std::int64_t first = rows.begin + index * each;
  return {first < rows.end ? first : rows.end, first + each < rows.end ? first + each : rows.end};
}

BOXLOSS_HOST_DEVICE std::int64_t clamp(std::int64_t value, std::int64_t low, std::int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/// The common base of the pairings of an (images, slots) grid, which follow it.
struct Grid {
  std::int64_t slots;

  BOXLOSS_HOST_DEVICE ImageSlots image(std::int64_t b) const { return {slots, 0, b * slots}; }
  BOXLOSS_HOST_DEVICE RowRange rows(std::int64_t b) const { return {b * slots, (b + 1) * slots}; }
  BOXLOSS_HOST_DEVICE bool counts(std::int64_t) const { return true; }
  template <class T>
  BOXLOSS_HOST_DEVICE bool counts(const Box<T>&) const {
    return true;
  }
  template <class T>
  BOXLOSS_HOST_DEVICE bool counts(const RotatedBox<T>&) const {
    return true;
  }
};

/// Every slot is valid.
struct Dense : Grid {};

/// The first lengths[b] slots of image b are valid.
struct Lengths : Grid {
  Indices lengths;

  BOXLOSS_HOST_DEVICE ImageSlots image(std::int64_t b) const {
    return {clamp(lengths[b], 0, slots), 0, b * slots};
  }
};

/// A slot is valid where the mask is true.
struct Mask : Grid {
  const std::uint8_t* mask;

  using Grid::counts;
  BOXLOSS_HOST_DEVICE bool counts(std::int64_t row) const { return mask[row] != 0; }
};

/// A slot is valid unless its target's values are all zero (-0 is zero, NaN is not).
struct ZeroPadded : Grid {
  using Grid::counts;
  template <class T>
  BOXLOSS_HOST_DEVICE bool counts(const Box<T>& target) const {
    return !(target.x1 == T(0) && target.y1 == T(0) && target.x2 == T(0) && target.y2 == T(0));
  }
  template <class T>
  BOXLOSS_HOST_DEVICE bool counts(const RotatedBox<T>& target) const {
    return !(target.cx == T(0) && target.cy == T(0) && target.w == T(0) && target.h == T(0) &&
             target.angle == T(0));
  }
};

}  // namespace boxloss
