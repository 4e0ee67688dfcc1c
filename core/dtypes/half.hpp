// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "../math/bits.hpp"
#include "../math/host_device.hpp"

/// The two 16-bit floats as storage: converted to and from float in registers, never computed with.
namespace boxloss {

struct Half {
  std::uint16_t bits;
};

struct BFloat16 {
  std::uint16_t bits;
};

BOXLOSS_HOST_DEVICE float to_float(BFloat16 value) {
  return bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// Rounds to nearest, ties to even; NaN stays NaN.
BOXLOSS_HOST_DEVICE BFloat16 to_bfloat16(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  BFloat16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#else
  const std::uint32_t bits = bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = value != value;
  return {static_cast<std::uint16_t>(is_nan ? 0x7fc0u : rounded)};
#endif
}

/// Exact, also where the processor flushes subnormal floats to zero: no half is one as a float.
BOXLOSS_HOST_DEVICE float to_float(Half value) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#elif defined(__AMDGCN__)
  return bit_cast<_Float16>(value);
#else
  const std::uint32_t magnitude = static_cast<std::uint32_t>(value.bits & 0x7fffu) << 13;
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  // A subnormal's digits behind those of 2^-14, which the subtraction takes away again.
  const float subnormal = bit_cast<float>(magnitude | 0x38800000u) - 0x1p-14f;
  const std::uint32_t finite =
      magnitude < 0x00800000u ? bit_cast<std::uint32_t>(subnormal) : magnitude + 0x38000000u;
  const std::uint32_t bits = magnitude < 0x0f800000u ? finite : magnitude | 0x7f800000u;
  return bit_cast<float>(bits | sign);
#endif
}

/// Rounds to nearest, ties to even; overflow gives infinity, NaN stays NaN.
BOXLOSS_HOST_DEVICE Half to_half(float value) {
#if defined(__CUDA_ARCH__)
  Half result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#elif defined(__AMDGCN__)
  return bit_cast<Half>(static_cast<_Float16>(value));
#else
  const std::uint32_t bits = bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {
    // Adding 0.5 leaves the subnormal's bits, rounded by the addition, at the end of the mantissa.
    const float shifted = bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (bit_cast<std::uint32_t>(shifted) - 0x3f000000u))};
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
#endif
}

}  // namespace boxloss
