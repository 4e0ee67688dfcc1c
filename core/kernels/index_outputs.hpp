// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "../math/host_device.hpp"

namespace boxloss {

/// Indices to write, int32 or int64; or nowhere, if they are not wanted.
struct IndexOutputs {
  void* data;
  bool is_int64;

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
