// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "../dtypes/elements.hpp"
#include "../math/box.hpp"
#include "../pairings/indices.hpp"
#include "team.hpp"

/// Ground truth, list by list: what a fault is, and what is written.
namespace boxloss {

constexpr float kFaultFactor = std::numeric_limits<float>::quiet_NaN();

/// As many as the parameters of a kernel hold, which are 4 KB in HIP.
constexpr int kMostLists = 128;

/// Some of the lists, by value.
struct TargetLists {
  const void* boxes[kMostLists];
  const void* labels[kMostLists];
  std::int64_t first_row[kMostLists + 1];  ///< of each in the result, and where the last ends
  std::int64_t first_list;
  int count;
  bool is_last;
};

struct CollateArgs {
  DType boxes_dtype;
  bool has_int64_labels;
  Elements<Any> image;  ///< without data: not given
  std::int64_t rows, images, classes;
  bool has_sizes;
  void* boxes;
  std::int64_t* labels;
  std::int64_t* offsets;
  float* factor;
  float* number;
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

/// Copies a box, of row `from` of a list, and says whether it has a fault.
template <class E>
BOXLOSS_HOST_DEVICE bool collate_box(const CollateArgs& a, const Elements<E>& boxes,
                                     std::int64_t from, std::int64_t to) {
  for (int i = 0; i < 4; ++i) static_cast<E*>(a.boxes)[4 * to + i] = boxes.data[4 * from + i];
  const Box<Comparable<E>> box = boxes.template get_box<Box<Comparable<E>>>(4 * from);
  return !is_finite_box(box) || has_negative_size(box, a.has_sizes);
}

/// Whether a row's image index is out of range, as NaN is, or less than that of the row before.
template <class E>
BOXLOSS_HOST_DEVICE bool is_misplaced(const Elements<E>& image, std::int64_t row,
                                      std::int64_t images) {
  using V = Comparable<E>;
  const V own = image.template get<V>(row);
  const V before = row > 0 ? image.template get<V>(row - 1) : V(0);
  return !(own >= V(0)) || !(own >= before) || !(own < V(images));
}

/// The list of a row: the last one that begins at it or before, since those without rows have none.
BOXLOSS_HOST_DEVICE int list_of(const TargetLists& lists, std::int64_t row) {
  int low = 0, high = lists.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (lists.first_row[middle] <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/// Writes a row of the result, and says whether it has a fault. All of a row is read in any case,
/// so that no read waits for another.
BOXLOSS_HOST_DEVICE bool collate_row(const CollateArgs& a, const TargetLists& lists,
                                     std::int64_t row) {
  const int list = list_of(lists, row);
  const std::int64_t from = row - lists.first_row[list];
  const std::int64_t label = Indices{lists.labels[list], a.has_int64_labels}[from];
  const bool is_box_faulty =
      with_elements(lists.boxes[list], a.boxes_dtype,
                    [&a, from, row](auto boxes) { return collate_box(a, boxes, from, row); });
  const bool has_no_place =
      a.image.data != nullptr && with_elements(a.image.data, a.image.dtype, [&a, row](auto image) {
        return is_misplaced(image, row, a.images);
      });
  const bool is_below = label < 0, is_above = a.classes > 0 && label >= a.classes;
  a.labels[row] = is_below ? 0 : is_above ? a.classes - 1 : label;
  return is_below || is_above || is_box_faulty || has_no_place;
}

/// The first row of an image, as far as images do not decrease; always within the rows.
BOXLOSS_HOST_DEVICE std::int64_t first_row_of(const CollateArgs& a, std::int64_t image) {
  return with_elements(a.image.data, a.image.dtype, [&a, image](auto images) {
    using V = Comparable<std::decay_t<decltype(*images.data)>>;
    std::int64_t low = 0, high = a.rows;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (images.template get<V>(middle) < V(image)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  });
}

/// How many offsets come with these lists, and writes one of them.
BOXLOSS_HOST_DEVICE std::int64_t offsets_of(const CollateArgs& a, const TargetLists& lists) {
  if (a.image.data != nullptr) return a.images + 1;
  return lists.count + (lists.is_last ? 1 : 0);
}

BOXLOSS_HOST_DEVICE void write_offset(const CollateArgs& a, const TargetLists& lists,
                                      std::int64_t i) {
  const bool is_listed = a.image.data == nullptr;
  a.offsets[is_listed ? lists.first_list + i : i] =
      is_listed ? lists.first_row[i] : first_row_of(a, i);
}

/// Called by one thread, behind all rows of these lists. The host may look at the answer at any
/// time: it is written once and whole, past all caches of the device.
BOXLOSS_HOST_DEVICE void write_factor(const CollateArgs& a, const TargetLists& lists,
                                      bool has_fault) {
  const bool had_fault = lists.first_list > 0 && *a.factor != 1.0f;
  const float factor = has_fault || had_fault ? kFaultFactor : 1.0f;
  *a.factor = factor;
  *a.number = factor * static_cast<float>(a.rows > 1 ? a.rows : 1);
  if (a.answer != nullptr && lists.is_last) *static_cast<volatile float*>(a.answer) = factor;
}

/// By one team, which shares `has_fault`.
template <class Team>
BOXLOSS_HOST_DEVICE void collate_lists(const Team& team, bool& has_fault, const CollateArgs& a,
                                       const TargetLists& lists) {
  if (team.thread() == 0) has_fault = false;
  team.sync();
  bool is_own_faulty = false;
  const std::int64_t end = lists.first_row[lists.count];
  BOXLOSS_NO_UNROLL
  for (std::int64_t row = lists.first_row[0] + team.thread(); row < end; row += team.threads()) {
    if (collate_row(a, lists, row)) is_own_faulty = true;
  }
  for (std::int64_t i = team.thread(); i < offsets_of(a, lists); i += team.threads()) {
    write_offset(a, lists, i);
  }
  if (is_own_faulty) has_fault = true;
  team.sync();
  if (team.thread() == 0) write_factor(a, lists, has_fault);
}

}  // namespace boxloss
