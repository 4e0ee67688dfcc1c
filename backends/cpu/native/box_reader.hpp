// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/view.hpp>
#include <utility>

#include "cpu/native/rows.hpp"

namespace boxloss::native {

/// The boxes of pred or target, as given and as corners.
template <class C, int kPairs>
class BoxReader {
 public:
  explicit BoxReader(const BoxView& view)
      : boxes_(view.data, view.dtype, view.coordinate_stride), format_(view.format) {}

  BoxFormat format() const { return format_; }
  const C* read(const Places& elements, int count) { return boxes_.read(elements, count); }

  const C* corners(const C* boxes, int count) {
    if (format_ == BoxFormat::kXyxy) return boxes;
    std::copy_n(boxes, 4 * whole_blocks(count), corners_.values);
    vector_code<C>().to_corners(corners_.values, format_, count);
    return corners_.values;
  }

  /// As formulas take boxes, and their gradients back: what readers of all kinds of boxes have.
  const C* for_formula(const C* boxes, int count) { return corners(boxes, count); }
  void to_given(C* gradients, int count) const {
    vector_code<C>().from_corners_gradient(gradients, format_, count);
  }

 private:
  RowReader<C, 4, kPairs> boxes_;
  BoxFormat format_;
  Rows<C, 4, kPairs> corners_;
};

/// Rotated boxes, as given and in radians.
template <class C, int kPairs>
class RotatedBoxReader {
 public:
  RotatedBoxReader(const BoxView& view, AngleUnit unit)
      : boxes_(view.data, view.dtype, view.coordinate_stride), unit_(unit) {}

  const C* read(const Places& elements, int count) { return boxes_.read(elements, count); }

  /// Once for what was read, of which it changes the angles.
  const C* for_formula(const C* boxes, int count) {
    if (unit_ == AngleUnit::kRadians) return boxes;
    C* const own = boxes_.buffer();
    if (boxes != own) std::copy_n(boxes, 5 * whole_blocks(count), own);
    vector_code<C>().rotated.in_radians(own, unit_, count);
    return own;
  }
  void to_given(C* gradients, int count) const {
    if (unit_ == AngleUnit::kRadians) return;
    vector_code<C>().rotated.from_radians_gradient(gradients, unit_, count);
  }

 private:
  RowReader<C, 5, kPairs> boxes_;
  AngleUnit unit_;
};

/// The reader for up to kPairs boxes of type B.
template <class B, int kPairs = kTilePairs, class C = typename B::Value>
auto reader_of(const BoxView& boxes, [[maybe_unused]] AngleUnit unit) {
  if constexpr (B::kNumbers == 4) {
    return BoxReader<C, kPairs>(boxes);
  } else {
    return RotatedBoxReader<C, kPairs>(boxes, unit);
  }
}
template <class B>
using ReaderOfBoxes = decltype(reader_of<B>(std::declval<BoxView>(), AngleUnit()));

/// What depends on the kind of a problem's boxes: how they are read, and the vector loops for them.
template <class C, int kPairs = kTilePairs, class Problem>
auto reader_of([[maybe_unused]] const Problem& p, const BoxView& boxes) {
  if constexpr (Problem::kNumbers == 4) {
    return reader_of<Box<C>, kPairs>(boxes, AngleUnit::kRadians);
  } else {
    return reader_of<RotatedBox<C>, kPairs>(boxes, p.angle_unit);
  }
}
template <class C, class Problem, int kPairs = kTilePairs>
using ReaderOf = decltype(reader_of<C, kPairs>(std::declval<Problem>(), std::declval<BoxView>()));

template <class C, class Problem>
const auto& box_code() {
  if constexpr (Problem::kNumbers == 4) {
    return vector_code<C>();
  } else {
    return vector_code<C>().rotated;
  }
}

}  // namespace boxloss::native
