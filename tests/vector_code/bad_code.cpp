// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

/// Functions with names of backends/cpu/vector/vector_code.cpp; can_fail.cmake says which are bad.
namespace boxloss::native {

/// Weak.
__attribute__((noinline)) inline float half(float x) { return x / 2; }
float half_of_weak(float x) { return half(x); }

namespace {

template <class C>
void multiply(C* __restrict values, const C* by) {
#pragma omp simd
  for (int i = 0; i < 1600; ++i) values[i] *= by[i];
}

/// Each value needs the one before.
template <class C>
void ious(C* values) {
  for (int i = 4; i < 1600; ++i)
    values[i] = values[i - 1] * values[i - 2] + values[i - 3] / values[i - 4];
}

template <class C>
void losses(C* values) {
  for (int i = 1; i < 1600; ++i) {
    values[i] =
        std::exp(values[i]) + values[i - 1] * values[i] - values[i - 1] / values[i] + values[i] * 3;
  }
}

}  // namespace

template <class C>
struct Code {
  void (*multiply)(C*, const C*);
  void (*ious)(C*);
  void (*losses)(C*);
};

extern const Code<float> kFloat;
extern const Code<double> kDouble;
const Code<float> kFloat = {multiply<float>, ious<float>, losses<float>};
const Code<double> kDouble = {multiply<double>, ious<double>, losses<double>};

}  // namespace boxloss::native
