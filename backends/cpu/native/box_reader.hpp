// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/view.hpp>

#include "cpu/native/rows.hpp"

namespace boxloss::native {

/// The boxes of pred or target, as given and as corners.
template <class C>
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

 private:
  RowReader<C, 4> boxes_;
  BoxFormat format_;
  Rows<C, 4> corners_;
};

}  // namespace boxloss::native
