// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/view.hpp>
#include <cstdint>

#include "../math/host_device.hpp"

namespace boxloss {

/// int32 or int64 indices.
struct Indices {
  const void* data;
  bool is_int64;

  BOXLOSS_HOST_DEVICE std::int64_t operator[](std::int64_t i) const {
    return is_int64 ? static_cast<const std::int64_t*>(data)[i]
                    : static_cast<const std::int32_t*>(data)[i];
  }
};

inline Indices indices(const ArrayView& view) { return {view.data, view.dtype == DType::kI64}; }

/// Whether the offsets of images go up, within [0, rows].
inline bool are_in_order(const Indices& offsets, std::int64_t images, std::int64_t rows) {
  bool are_right = offsets[0] >= 0 && offsets[images] <= rows;
  for (std::int64_t b = 0; b < images; ++b) {
    are_right = are_right && offsets[b] <= offsets[b + 1];
  }
  return are_right;
}

/// int32 or int64 indices to write, or null.
struct IndexOutputs {
  void* data;
  bool is_int64;

  /// The same, for reading.
  BOXLOSS_HOST_DEVICE Indices indices() const { return {data, is_int64}; }

  BOXLOSS_HOST_DEVICE void set(std::int64_t i, std::int64_t value) const {
    if (data == nullptr) return;
    if (is_int64) {
      static_cast<std::int64_t*>(data)[i] = value;
    } else {
      static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(value);
    }
  }
};

}  // namespace boxloss
