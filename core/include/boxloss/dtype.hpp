// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/export.hpp>
#include <cstddef>
#include <cstdint>

namespace boxloss {

/// Element types of boxes, weights, indices and normalizers. An array of kNone is not given.
enum class DType : std::uint8_t { kF64, kF32, kF16, kBF16, kU8, kI16, kI32, kI64, kNone };

/// "float64", "float32", "float16", "bfloat16", "uint8", "int16", "int32", "int64" or "none".
BOXLOSS_API const char* name_of(DType dtype);

/// Bytes of one element; 0 for kNone.
BOXLOSS_API std::size_t size_of(DType dtype);

constexpr bool is_floating(DType dtype) { return dtype <= DType::kBF16; }

}  // namespace boxloss
