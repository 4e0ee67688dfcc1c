// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>

#include "array.hpp"
#include "cases.hpp"
#include "math/box.hpp"
#include "math/rotated_box.hpp"
#include "random.hpp"

/// Numbers of a case, where its layout puts them.
namespace boxloss::conformance {

/// Of so many values for each slot of each image.
struct Strides {
  std::int64_t image, slot, value;
  std::int64_t start = 0;
};
Strides strides_of(Layout layout, std::int64_t images, std::int64_t slots, std::int64_t values);

/// Makes room for them, up to the last one: NaN or, in integer dtypes, the largest value. Gives
/// where the first one lies, null if there is none.
const void* lay_out(const Strides& strides, std::int64_t images, std::int64_t slots,
                    std::int64_t values, DType dtype, Array& array);

/// Calls visit(image, slot) once for each place in memory that holds a box.
template <class Visit>
void for_each_place(const BoxView& view, const Visit& visit) {
  for (std::int64_t b = 0;
       b < (view.image_stride == 0 ? std::min<std::int64_t>(view.images, 1) : view.images); ++b) {
    const std::int64_t slots =
        view.slot_stride == 0 ? std::min<std::int64_t>(view.slots, 1) : view.slots;
    for (std::int64_t j = 0; j < slots; ++j) visit(b, j);
  }
}

/// Corners as the four values of a format.
Box<double> in_format(const Box<double>& box, BoxFormat format);

/// Of the first value of a box, from the first of the view.
std::int64_t offset_of(const BoxView& view, std::int64_t image, std::int64_t slot);

/// Boxes of one operand: the array, and where its first box starts in it.
struct PlacedBoxes {
  Array& values;
  BoxView& view;
  std::int64_t start;
  int numbers = 4;  ///< of a box

  /// One number after the other.
  void set_numbers(std::int64_t b, std::int64_t j, std::initializer_list<double> list) const {
    const std::int64_t at = start + offset_of(view, b, j);
    std::int64_t i = 0;
    for (const double number : list) values.set(at + view.coordinate_stride * i++, number);
  }
  /// The same in all numbers, or in those from `begin` to `end`.
  void set_all(std::int64_t b, std::int64_t j, double number) const {
    set_all(b, j, number, 0, numbers);
  }
  void set_all(std::int64_t b, std::int64_t j, double number, int begin, int end) const {
    const std::int64_t at = start + offset_of(view, b, j);
    for (int i = begin; i < end; ++i) values.set(at + view.coordinate_stride * i, number);
  }

  /// A box with these corners, before it is turned by `angle`, if it can be.
  void set_turned(std::int64_t b, std::int64_t j, const Box<double>& box, double angle) const {
    if (numbers == 4) return set(b, j, in_format(box, view.format));
    const Box<double> c = in_format(box, BoxFormat::kCxcywh);
    set_numbers(b, j, {c.x1, c.y1, c.x2, c.y2, angle});
  }

  void set(std::int64_t b, std::int64_t j, const Box<double>& box) const {
    set_numbers(b, j, {box.x1, box.y1, box.x2, box.y2});
  }
};

/// Sets `view` and `values`, as above.
PlacedBoxes lay_out(const Operand& operand, std::int64_t images, std::int64_t slots, BoxView& view,
                    Array& values, int numbers = 4);

/// `origin` is where coordinates begin.
void fill(const PlacedBoxes& boxes, Values values, double origin, Random& random);
/// Rotated boxes, of which several pairs may have one.
void fill_rotated(const PlacedBoxes& boxes, Values values, double origin, AngleUnit unit,
                  bool is_shared, Random& random);

/// Overwrites the boxes that are not read; for_each_read(read) calls read(image, slot) for those
/// that are.
template <class ForEachRead>
void spoil_unread(const PlacedBoxes& boxes, const ForEachRead& for_each_read) {
  std::vector<bool> is_read(static_cast<std::size_t>(boxes.values.count()));
  const auto place = [&](std::int64_t b, std::int64_t j) {
    return static_cast<std::size_t>(offset_of(boxes.view, b, j));
  };
  for_each_read([&](std::int64_t b, std::int64_t j) { is_read[place(b, j)] = true; });
  for_each_place(boxes.view, [&](std::int64_t b, std::int64_t j) {
    if (!is_read[place(b, j)]) boxes.set_all(b, j, kNan);
  });
}

}  // namespace boxloss::conformance
