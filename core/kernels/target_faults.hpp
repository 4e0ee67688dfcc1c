// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "../dtypes/elements.hpp"
#include "../math/box.hpp"
#include "../pairings/indices.hpp"

/// Faults in ground truth: what one is, and what is written.
namespace boxloss {

constexpr float kFaultFactor = std::numeric_limits<float>::quiet_NaN();

struct TargetFaultsArgs {
  Elements<Any> boxes;
  Indices labels;
  Elements<Any> image;  ///< without data: not given
  std::int64_t rows, classes, images;
  bool has_sizes;
  float* factor;
  float* answer;  ///< null: not wanted
};

/// A type that has every value of an element type, so that comparisons are exact.
template <class E>
using Comparable = std::conditional_t<std::is_integral_v<E>, std::int64_t,
                                      std::conditional_t<std::is_same_v<E, double>, double, float>>;

/// Infinity less itself is NaN; integers are always finite.
template <class T>
BOXLOSS_HOST_DEVICE bool is_finite_box(const Box<T>& b) {
  return b.x1 - b.x1 == T(0) && b.y1 - b.y1 == T(0) && b.x2 - b.x2 == T(0) && b.y2 - b.y2 == T(0);
}

/// Corners are compared, not subtracted: a difference of integers could overflow.
template <class T>
BOXLOSS_HOST_DEVICE bool has_negative_size(const Box<T>& b, bool has_sizes) {
  return b.x2 < (has_sizes ? T(0) : b.x1) || b.y2 < (has_sizes ? T(0) : b.y1);
}

template <class E>
BOXLOSS_HOST_DEVICE bool is_faulty_box(const Elements<E>& boxes, std::int64_t row, bool has_sizes) {
  const Box<Comparable<E>> box = boxes.template get_box<Comparable<E>>(4 * row);
  return !is_finite_box(box) || has_negative_size(box, has_sizes);
}

/// Whether a row's image index is out of range, as NaN is, or less than that of the row before.
template <class E>
BOXLOSS_HOST_DEVICE bool is_misplaced(const Elements<E>& image, std::int64_t row,
                                      std::int64_t images) {
  using V = Comparable<E>;
  const V own = image.template get<V>(row);
  const V before = row > 0 ? image.template get<V>(row - 1) : V(0);
  return !(own >= V(0)) || !(own >= before) || (images > 0 && !(own < V(images)));
}

/// All of a row is read in any case, so that no read waits for another.
BOXLOSS_HOST_DEVICE bool is_faulty(const TargetFaultsArgs& a, std::int64_t row) {
  const std::int64_t label = a.labels[row];
  const bool is_box_faulty = with_elements(a.boxes.data, a.boxes.dtype, [&a, row](auto boxes) {
    return is_faulty_box(boxes, row, a.has_sizes);
  });
  const bool has_no_place =
      a.image.data != nullptr && with_elements(a.image.data, a.image.dtype, [&a, row](auto image) {
        return is_misplaced(image, row, a.images);
      });
  const bool is_outside = label < 0 || (a.classes > 0 && label >= a.classes);
  return is_outside || is_box_faulty || has_no_place;
}

/// Called by one thread. The host may look at the answer at any time: it is written once and whole,
/// past all caches of the device.
BOXLOSS_HOST_DEVICE void write_factor(const TargetFaultsArgs& a, bool has_fault) {
  const float factor = has_fault ? kFaultFactor : 1.0f;
  *a.factor = factor;
  if (a.answer != nullptr) *static_cast<volatile float*>(a.answer) = factor;
}

}  // namespace boxloss
