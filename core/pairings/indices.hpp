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
