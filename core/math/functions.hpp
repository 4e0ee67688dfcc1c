// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic.hpp"
#include "bits.hpp"
#include "host_device.hpp"

/// Branch-free atan2, exp, log and sqrt, so that loops over them vectorize (a compiler makes scalar
/// calls of libm's). Those of float are this library's own, with the same polynomials on every
/// device, except for exp on NVIDIA's. Each has a bound in unit roundoffs u = 2^-24 of the result:
/// tests/core/test_functions.cpp checks the host's, the conformance suite all of them. Those of
/// double are the platform's.
namespace boxloss {

/// atan on [0, 1], within 2 u.
BOXLOSS_HOST_DEVICE float atan_of_fraction(float q) {
  const float u = q * q;
  float p = 0.0029206919f;
  p = p * u - 0.016367927f;
  p = p * u + 0.04321186f;
  p = p * u - 0.07552214f;
  p = p * u + 0.106660046f;
  p = p * u - 0.14211056f;
  p = p * u + 0.19993773f;
  p = p * u - 0.33333153f;
  return q + q * u * p;
}

BOXLOSS_HOST_DEVICE double atan_of_fraction(double q) { return ::atan(q); }

/// The angle of (x, y) from the x axis, within 8 u; 0 where both are 0.
template <class T>
BOXLOSS_HOST_DEVICE T atan2(T y, T x) {
  const T height = magnitude(y), width = magnitude(x);
  const T angle = atan_of_fraction(fraction(smaller(height, width), larger(height, width)));
  const T steep = select(height > width, T(1.5707963267948966) - angle, angle);
  const T turned = select(x < T(0), T(3.1415926535897932) - steep, steep);
  return select(y < T(0), -turned, turned);
}

/// exp for x <= 0.25, within 2 u, or 6 u where a GPU has an instruction for powers of 2. At 0 it is
/// exactly 1; a result less than 1.7e-38, below -87, may be 0.
BOXLOSS_HOST_DEVICE float exp(float x) {
#if defined(__CUDA_ARCH__)
  const float in_range = at_least(x, -104.0f);  // where the power is 0, as all subnormal ones
  const float rounded = in_range * 1.44269502f;
  // What the product and its constant rounded off; ln 2 in two parts.
  const float rest = fmaf(rounded, 1.9046543e-9f, fmaf(rounded, -0.693147182f, in_range));
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(rounded));
  return fmaf(power, rest, power);
#else
  const float in_range = at_least(x, -87.0f);
  // Adding 1.5 * 2^23 leaves the nearest integer in the last bits.
  const float shifted = in_range * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (in_range - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts
  float p = 0.0013814613f;
  p = p * r + 0.00836871f;
  p = p * r + 0.04166839f;
  p = p * r + 0.16666521f;
  p = p * r + 0.49999994f;
  const float power = (r * r * p + r) + 1.0f;
  const std::uint32_t exponent = bit_cast<std::uint32_t>(shifted) + (127u - 0x4b400000u);
  return select(x < -87.0f, 0.0f, power * bit_cast<float>(exponent << 23));
#endif
}

BOXLOSS_HOST_DEVICE double exp(double x) { return ::exp(x); }

/// log(2^n (1 + f)) for 1 + f in [sqrt(1/2), sqrt(2)), within 2 u.
BOXLOSS_HOST_DEVICE float log_of_parts(float n, float f) {
  float p = -0.076344974f;
  p = p * f + 0.12761578f;
  p = p * f - 0.13160183f;
  p = p * f + 0.14201757f;
  p = p * f - 0.16623357f;
  p = p * f + 0.20001227f;
  p = p * f - 0.2500082f;
  p = p * f + 0.3333333f;
  const float square = f * f;
  const float tail = p * f * square + n * -2.12194440e-4f - 0.5f * square;
  return (f + tail) + n * 0.693359375f;
}

/// log for x >= 0, within 2 u; of 0 it is -infinity, without a derivative.
BOXLOSS_HOST_DEVICE float log(float x) {
  const bool is_small = x < 0x1p-100f;  // subnormals among them
  const float in_range = select(is_small, x * 0x1p64f, x);
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const std::uint32_t bits = bit_cast<std::uint32_t>(in_range);
  const std::int32_t e = static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;
  const float f = bit_cast<float>(bits - (static_cast<std::uint32_t>(e) << 23)) - 1.0f;
  const float n = static_cast<float>(e) - select(is_small, 64.0f, 0.0f);
  const float finite = log_of_parts(n, f);
  const float special = select(x == 0.0f, -INFINITY, x);  // infinity and NaN stay
  return select(both(x > 0.0f, x < INFINITY), finite, special);
}

BOXLOSS_HOST_DEVICE double log(double x) { return ::log(x); }

/// log(1 + x) for x in [0, 1], within 4 u.
BOXLOSS_HOST_DEVICE float log1p_of_fraction(float x) {
  float p = -0.0032440259f;
  p = p * x + 0.019851465f;
  p = p * x - 0.05695954f;
  p = p * x + 0.10603655f;
  p = p * x - 0.15305594f;
  p = p * x + 0.19675939f;
  p = p * x - 0.24954134f;
  p = p * x + 0.33329964f;
  p = p * x - 0.499999f;
  p = p * x + 1.0f;
  return p * x;
}

BOXLOSS_HOST_DEVICE double log1p_of_fraction(double x) { return ::log1p(x); }

/// log(1 + x) for x >= 0, within 4 u.
BOXLOSS_HOST_DEVICE float log1p(float x) {
  // The smaller of x and 1, by a function that keeps NaN.
  return select(x > 1.0f, log(1.0f + x), log1p_of_fraction(-at_least(-x, -1.0f)));
}

BOXLOSS_HOST_DEVICE double log1p(double x) { return ::log1p(x); }

/// log(1 + x) for x in [0, 2^100], within 4 u; NaN stays.
BOXLOSS_HOST_DEVICE float log1p_in_range(float x) {
  const std::uint32_t e = (bit_cast<std::uint32_t>(1.0f + x) - 0x3f3504f3u) >> 23;
  const float scale = bit_cast<float>((127u - e) << 23);
  return log_of_parts(static_cast<float>(e), x * scale + (scale - 1.0f));
}

/// exp(x) - 1 for x <= 0, within 4 u, or 6 u where a GPU has an instruction for powers of 2.
BOXLOSS_HOST_DEVICE float expm1(float x) {
  float p = 1.600285714e-05f;
  p = p * x + 0.0001852145286f;
  p = p * x + 0.001378178937f;
  p = p * x + 0.008328462074f;
  p = p * x + 0.04166546682f;
  p = p * x + 0.1666665251f;
  p = p * x + 0.4999999943f;
  return select(x < -1.0f, exp(x) - 1.0f, x * x * p + x);
}

BOXLOSS_HOST_DEVICE double expm1(double x) { return ::expm1(x); }

/// A rough logarithm, for a result that is added to something of the order of 1. For normal x > 0,
/// within 2 u; or, on a GPU with an instruction for it, within 6 u of the result or of 1, whichever
/// is larger.
BOXLOSS_HOST_DEVICE float rough_log(float x) {
#if defined(__CUDA_ARCH__)
  float power;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power * 0.693147181f;
#else
  return log(x);
#endif
}

BOXLOSS_HOST_DEVICE double rough_log(double x) { return ::log(x); }

/// The square root of x >= 0, within 2 u.
BOXLOSS_HOST_DEVICE float sqrt(float x) {
#if defined(__CUDA_ARCH__)
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
#elif defined(__HIP_DEVICE_COMPILE__)
  return __builtin_amdgcn_sqrtf(x);
#else
  return ::sqrtf(x);
#endif
}

BOXLOSS_HOST_DEVICE double sqrt(double x) { return ::sqrt(x); }

/// The same for x that is 0 or at least the least normal number, for which a GPU has one
/// instruction.
template <class T>
BOXLOSS_HOST_DEVICE T sqrt_of_normal(T x) {
  return sqrt(x);
}
#if defined(__CUDA_ARCH__)
BOXLOSS_HOST_DEVICE float sqrt_of_normal(float x) {
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
#endif

/// 1 / sqrt(x) for x >= 1, within 4 u.
template <class T>
BOXLOSS_HOST_DEVICE T reciprocal_sqrt(T x) {
  return reciprocal_of_normal(sqrt_of_normal(x));
}
#if defined(__CUDA_ARCH__)
BOXLOSS_HOST_DEVICE float reciprocal_sqrt(float x) {
  float root;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
#endif

}  // namespace boxloss
