// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "host_device.hpp"

namespace boxloss {

/// a / b rounded up, for a >= 0 and b > 0: the number of pieces of size b that cover a.
BOXLOSS_HOST_DEVICE std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace boxloss
