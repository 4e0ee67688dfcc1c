// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "host_device.hpp"

/// The functions that formulas are written with, besides + - * and comparisons. They are
/// branch-free; tests and bindings overload them for their own number types. NaN may be lost in
/// smaller and larger: a formula must not rely on them to propagate it.
namespace boxloss {

template <class T>
BOXLOSS_HOST_DEVICE T smaller(T a, T b) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return ::fmin(a, b);
#else
  return b < a ? b : a;
#endif
}

template <class T>
BOXLOSS_HOST_DEVICE T larger(T a, T b) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return ::fmax(a, b);
#else
  return a < b ? b : a;
#endif
}

/// The larger of the two; NaN stays NaN.
template <class T>
BOXLOSS_HOST_DEVICE T at_least(T value, T floor) {
  return value < floor ? floor : value;
}

template <class T>
BOXLOSS_HOST_DEVICE T select(bool condition, T a, T b) {
  return condition ? a : b;
}

BOXLOSS_HOST_DEVICE bool both(bool a, bool b) { return a && b; }

/// A value that derivatives treat as a constant.
template <class T>
BOXLOSS_HOST_DEVICE T hold_constant(T value) {
  return value;
}

/// What exp is taken of: derivatives treat it as a constant where exp is 0, since what that is
/// multiplied by may be infinite.
template <class T>
BOXLOSS_HOST_DEVICE T exponent(T value) {
  return value;
}

/// A value whose derivative by a variable is to be that of its text and `slope`.
template <class T>
BOXLOSS_HOST_DEVICE T with_slope(T value, T /*slope*/, T /*variable*/) {
  return value;
}

template <class T>
BOXLOSS_HOST_DEVICE T magnitude(T value) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return ::fabs(value);  // of an operand it takes no instruction
#else
  return larger(value, -value);
#endif
}

BOXLOSS_HOST_DEVICE double reciprocal(double value) { return 1.0 / value; }

/// 1 / x; on a GPU within one unit in the last place, in fewer instructions than a division.
BOXLOSS_HOST_DEVICE float reciprocal(float value) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
#elif defined(__HIP_DEVICE_COMPILE__)
  return __builtin_amdgcn_rcpf(value);
#else
  return 1.0f / value;
#endif
}

/// The same for x that is at least the least normal number, for which a GPU has one instruction;
/// beyond 2^126 it may be 0.
template <class T>
BOXLOSS_HOST_DEVICE T reciprocal_of_normal(T value) {
  return reciprocal(value);
}
#if defined(__CUDA_ARCH__)
BOXLOSS_HOST_DEVICE float reciprocal_of_normal(float value) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}
#endif

/// part / whole for 0 <= part <= whole. Where whole is 0, or smaller than float's normal numbers,
/// whose reciprocal may be infinite, it is part, which is next to 0.
template <class T>
BOXLOSS_HOST_DEVICE T fraction(T part, T whole) {
  return part * reciprocal(select(whole > T(1.17549435e-38), whole, T(1)));
}

/// The least normal number of x's type: below it a reciprocal may be infinite.
template <class T>
BOXLOSS_HOST_DEVICE T least_normal(const T& /*x*/) {
  return T(1.17549435e-38);
}
BOXLOSS_HOST_DEVICE double least_normal(double /*x*/) { return 2.2250738585072014e-308; }

/// Whether a division by x is one.
template <class T>
BOXLOSS_HOST_DEVICE auto has_reciprocal(const T& x) {
  return magnitude(x) > least_normal(x);
}

/// part / whole as a share, of either sign: in [0, 1] whatever rounding made of the two, and 0
/// where whole is 0.
template <class T>
BOXLOSS_HOST_DEVICE T share(T part, T whole) {
  const auto is_some = has_reciprocal(whole);
  const T quotient = part * reciprocal(select(is_some, whole, T(1)));
  return select(is_some, smaller(larger(quotient, T(0)), T(1)), T(0));
}

}  // namespace boxloss
