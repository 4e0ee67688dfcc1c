// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "arithmetic.hpp"
#include "bits.hpp"
#include "host_device.hpp"

/// The sine and cosine of an angle in radians, branch-free. The angle is reduced to a quarter turn
/// around 0 by subtracting a multiple of pi/2 in three parts (Cody and Waite), and either
/// polynomial is used for either function. Of 0 they are exactly 0 and 1.
namespace boxloss {

template <class T>
struct SinCos {
  T sin, cos;
};

/// An angle in [-bound, bound], NaN kept: where the reduction has no digits left, results stay
/// bounded.
template <class T>
BOXLOSS_HOST_DEVICE T bounded_angle(T angle, T bound = T(1)) {
  return select(angle > bound, bound, at_least(angle, -bound));
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800  // an instruction for each bound
BOXLOSS_HOST_DEVICE float bounded_angle(float angle, float bound = 1.0f) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(angle), "f"(-bound));
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(result), "f"(bound));
  return result;
}
#endif

/// Quarter turns, as the last bits of `number`, and sine and cosine of the rest.
template <class T>
struct Quarters {
  SinCos<T> rest;
  std::uint32_t number;
};

/// Of float, or of a number that is one float.
template <class T>
BOXLOSS_HOST_DEVICE Quarters<T> quarters_in_single(T angle) {
  // Adding 1.5 * 2^23 leaves the nearest integer in the last bits.
  const T shifted = angle * 0.636619772f + 12582912.0f;
  const T n = shifted - 12582912.0f;
  const T r = bounded_angle(((angle - n * 1.5703125f) - n * 4.837512969970703e-4f) -
                            n * 7.549789954891882e-8f);
  const T z = r * r;
  T s = -0.00019515219f;
  s = s * z + 0.0083321603f;
  s = s * z - 0.16666655f;
  s = s * z * r + r;
  T c = 2.4433084e-05f;
  c = c * z - 0.0013887316f;
  c = c * z + 0.041666646f;
  c = c * z * z + (1.0f - 0.5f * z);
  return {{s, c}, bit_cast<std::uint32_t>(shifted)};
}

template <class T>
BOXLOSS_HOST_DEVICE SinCos<T> sin_cos_in_single(T angle) {
  const Quarters<T> turn = quarters_in_single(angle);
  const std::uint32_t quarters = turn.number;
  const std::uint32_t s_bits = bit_cast<std::uint32_t>(turn.rest.sin);
  const std::uint32_t c_bits = bit_cast<std::uint32_t>(turn.rest.cos);
  // All ones, or none after an odd number of quarter turns, which exchange the two.
  const std::uint32_t own = (quarters & 1u) - 1u;
  return {bit_cast<T>(((s_bits & own) | (c_bits & ~own)) ^ ((quarters & 2u) << 30)),
          bit_cast<T>(((c_bits & own) | (s_bits & ~own)) ^ (((quarters + 1u) & 2u) << 30))};
}

/// The same of double.
template <class T>
BOXLOSS_HOST_DEVICE SinCos<T> sin_cos_in_double(T angle) {
  const T shifted = angle * 0.63661977236758138 + 6755399441055744.0;  // 1.5 * 2^52
  const T n = shifted - 6755399441055744.0;
  const T r = bounded_angle(((angle - n * 0x1.921fb544p+0) - n * 0x1.0b4611a6p-34) -
                            n * 0x1.3198a2e037073p-69);
  const T z = r * r;
  T s = 1.589619785588748e-10;
  s = s * z - 2.5050747221393267e-8;
  s = s * z + 2.7557313618031111e-6;
  s = s * z - 0.00019841269829580173;
  s = s * z + 0.0083333333333221073;
  s = s * z - 0.16666666666666631;
  s = s * z * r + r;
  T c = -1.1358514905123595e-11;
  c = c * z + 2.087570043355825e-9;
  c = c * z - 2.755731417635767e-7;
  c = c * z + 2.4801587288841749e-5;
  c = c * z - 0.0013888888888873041;
  c = c * z + 0.041666666666666593;
  c = c * z * z + (1.0 - 0.5 * z);
  const std::uint64_t quarters = bit_cast<std::uint64_t>(shifted);
  const std::uint64_t s_bits = bit_cast<std::uint64_t>(s), c_bits = bit_cast<std::uint64_t>(c);
  // By bits: not every capability can compare integers of 64.
  const std::uint64_t own = (quarters & 1u) - 1u;
  return {bit_cast<T>(((s_bits & own) | (c_bits & ~own)) ^ ((quarters & 2u) << 62)),
          bit_cast<T>(((c_bits & own) | (s_bits & ~own)) ^ (((quarters + 1u) & 2u) << 62))};
}

/// Within 2 u of 1 for |angle| <= 10^4, and of the result where |angle| <= pi/4; in [-1, 1] beyond.
BOXLOSS_HOST_DEVICE SinCos<float> sin_cos(float angle) { return sin_cos_in_single(angle); }

/// The same, within 4 units of double's.
BOXLOSS_HOST_DEVICE SinCos<double> sin_cos(double angle) { return sin_cos_in_double(angle); }

/// The direction of a line, which half a turn leaves as it is: sine and cosine, or both negated.
template <class T>
BOXLOSS_HOST_DEVICE SinCos<T> line_direction(T angle) {
  return sin_cos(angle);
}

/// As exact as sin_cos, in fewer operations: nothing is exchanged.
BOXLOSS_HOST_DEVICE SinCos<float> line_direction(float angle) {
  const float n = (angle * 0.318309886f + 12582912.0f) - 12582912.0f;
  const float r = bounded_angle(
      ((angle - n * 3.140625f) - n * 9.675025939941406e-4f) - n * 1.5099579909783764e-7f, 1.6f);
  const float z = r * r;
  float s = 2.6057508e-06f;
  s = s * z - 0.00019809591f;
  s = s * z + 0.0083330665f;
  s = s * z - 0.1666666f;
  s = s * z * r + r;
  float c = -2.619355e-07f;
  c = c * z + 2.4769291e-05f;
  c = c * z - 0.0013888569f;
  c = c * z + 0.041666657f;
  c = c * z * z + (1.0f - 0.5f * z);
  return {s, c};
}

}  // namespace boxloss
