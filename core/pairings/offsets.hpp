// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "grid.hpp"

namespace boxloss {

/// Targets of all images are one list of target_rows boxes; image b owns offsets[b] to offsets[b +
/// 1]. Offsets are clamped before use, so that none leads outside the list. Rows that no image owns
/// are given to a neighbouring image, so that for monotonic offsets every row belongs to exactly
/// one.
struct Offsets {
  std::int64_t images, slots, target_rows;
  Indices offsets;

  BOXLOSS_HOST_DEVICE ImageSlots image(std::int64_t b) const {
    const std::int64_t begin = clamp(offsets[b], 0, target_rows);
    const std::int64_t end = clamp(offsets[b + 1], begin, target_rows);
    return {clamp(end - begin, 0, slots), begin, begin};
  }
  BOXLOSS_HOST_DEVICE RowRange rows(std::int64_t b) const {
    const std::int64_t begin = clamp(offsets[b], 0, target_rows);
    const std::int64_t end = clamp(offsets[b + 1], begin, target_rows);
    return {b == 0 ? 0 : begin, b == images - 1 ? target_rows : end};
  }
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

}  // namespace boxloss
