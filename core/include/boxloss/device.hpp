// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/export.hpp>
#include <cstdint>

namespace boxloss {

/// The kind of memory that pointers are in. An implementation's name begins with its device:
/// "cpu/native".
enum class Device : std::uint8_t { kCpu, kCuda, kHip };

/// "cpu", "cuda" or "hip".
BOXLOSS_API const char* name_of(Device device);

}  // namespace boxloss
