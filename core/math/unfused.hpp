// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arithmetic.hpp"
#include "sin_cos.hpp"

/// Numbers that decide, and so must have the same bits on every device: each operation is rounded
/// by itself. On the host, files that compute matches are compiled without contraction, so plain
/// numbers do. A GPU's compiler would fuse products with sums.
namespace boxloss {

/// a * b, never fused with a sum that follows.
template <class C>
BOXLOSS_HOST_DEVICE C product(C a, C b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(C) == sizeof(float)) {
    return __fmul_rn(a, b);
  } else {
    return __dmul_rn(a, b);
  }
#else
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
  return a * b;
#endif
}

template <class C>
struct UnfusedNumber {
  C value;

  UnfusedNumber() = default;
  BOXLOSS_HOST_DEVICE UnfusedNumber(C number) : value(number) {}
  template <class Number>
  BOXLOSS_HOST_DEVICE explicit UnfusedNumber(Number number) : value(static_cast<C>(number)) {}

  friend BOXLOSS_HOST_DEVICE UnfusedNumber operator+(UnfusedNumber a, UnfusedNumber b) {
    return a.value + b.value;
  }
  friend BOXLOSS_HOST_DEVICE UnfusedNumber operator-(UnfusedNumber a, UnfusedNumber b) {
    return a.value - b.value;
  }
  friend BOXLOSS_HOST_DEVICE UnfusedNumber operator-(UnfusedNumber a) { return -a.value; }
  friend BOXLOSS_HOST_DEVICE UnfusedNumber operator*(UnfusedNumber a, UnfusedNumber b) {
    return product(a.value, b.value);
  }
  friend BOXLOSS_HOST_DEVICE bool operator<(UnfusedNumber a, UnfusedNumber b) {
    return a.value < b.value;
  }
  friend BOXLOSS_HOST_DEVICE bool operator>(UnfusedNumber a, UnfusedNumber b) {
    return a.value > b.value;
  }
};

// As the host computes them. A GPU's own instructions give other bits for NaN, for zeros of either
// sign, and in the last place of a reciprocal.

template <class C>
BOXLOSS_HOST_DEVICE UnfusedNumber<C> smaller(UnfusedNumber<C> a, UnfusedNumber<C> b) {
  return b < a ? b : a;
}
template <class C>
BOXLOSS_HOST_DEVICE UnfusedNumber<C> larger(UnfusedNumber<C> a, UnfusedNumber<C> b) {
  return a < b ? b : a;
}
template <class C>
BOXLOSS_HOST_DEVICE UnfusedNumber<C> magnitude(UnfusedNumber<C> a) {
  return larger(a, -a);
}
template <class C>
BOXLOSS_HOST_DEVICE UnfusedNumber<C> reciprocal(UnfusedNumber<C> a) {
  return C(1) / a.value;
}
template <class C>
BOXLOSS_HOST_DEVICE UnfusedNumber<C> least_normal(UnfusedNumber<C> a) {
  return least_normal(a.value);
}
BOXLOSS_HOST_DEVICE SinCos<UnfusedNumber<float>> sin_cos(UnfusedNumber<float> angle) {
  return sin_cos_in_single(angle);
}
BOXLOSS_HOST_DEVICE SinCos<UnfusedNumber<double>> sin_cos(UnfusedNumber<double> angle) {
  return sin_cos_in_double(angle);
}

template <class C>
BOXLOSS_HOST_DEVICE C plain(UnfusedNumber<C> a) {
  return a.value;
}
template <class C>
BOXLOSS_HOST_DEVICE C plain(C a) {
  return a;
}

#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
template <class C>
using Unfused = UnfusedNumber<C>;
#else
template <class C>
using Unfused = C;
#endif

}  // namespace boxloss
