// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "cpu/vector/vector_code.hpp"
#include "math/box.hpp"
#include "math/host_device.hpp"

/// A block of pairs as vector loops take it. Only for vector_code.cpp, which is compiled for each
/// capability, so everything here is always inlined, too.
namespace boxloss::native {
namespace {

/// Inlines a loop's body into the loop, however long it is.
#define BOXLOSS_INLINE __attribute__((always_inline))

/// Calls body for each pair of a block. Pairs are independent, whatever their addresses look like.
template <class Body>
BOXLOSS_HOST_DEVICE void for_each_in_block(const Body& body) {
#pragma omp simd
  for (int i = 0; i < kBlock; ++i) body(i);
}

template <class C>
BOXLOSS_HOST_DEVICE Box<C> box_at(const C* boxes, int i) {
  return {boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2], boxes[4 * i + 3]};
}

template <class C>
BOXLOSS_HOST_DEVICE void set_box_at(C* boxes, int i, const Box<C>& box) {
  boxes[4 * i] = box.x1;
  boxes[4 * i + 1] = box.y1;
  boxes[4 * i + 2] = box.x2;
  boxes[4 * i + 3] = box.y2;
}

/// A block's boxes, coordinate by coordinate.
template <class C>
struct Coordinates {
  C x1[kBlock], y1[kBlock], x2[kBlock], y2[kBlock];

  BOXLOSS_HOST_DEVICE Box<C> get(int i) const { return {x1[i], y1[i], x2[i], y2[i]}; }
  BOXLOSS_HOST_DEVICE void set(int i, const Box<C>& box) {
    x1[i] = box.x1;
    y1[i] = box.y1;
    x2[i] = box.x2;
    y2[i] = box.y2;
  }

  BOXLOSS_HOST_DEVICE void read(const C* boxes) {
    for_each_in_block([&](int i) BOXLOSS_INLINE { set(i, box_at(boxes, i)); });
  }
  BOXLOSS_HOST_DEVICE void write(C* boxes) const {
    for_each_in_block([&](int i) BOXLOSS_INLINE { set_box_at(boxes, i, get(i)); });
  }
};

#if defined(__AVX2__) && !defined(__AVX512F__)
/// Transposes with hand-written shuffles, which g++ does not find.
template <>
BOXLOSS_HOST_DEVICE void Coordinates<float>::read(const float* boxes) {
  for (int i = 0; i < kBlock; i += 8) {
    const float* const rows = boxes + 4 * i;  // each vector has rows k and k + 4
    const __m256 a = _mm256_loadu2_m128(rows + 16, rows);
    const __m256 b = _mm256_loadu2_m128(rows + 20, rows + 4);
    const __m256 c = _mm256_loadu2_m128(rows + 24, rows + 8);
    const __m256 d = _mm256_loadu2_m128(rows + 28, rows + 12);
    const __m256 xy1_ab = _mm256_unpacklo_ps(a, b), xy1_cd = _mm256_unpacklo_ps(c, d);
    const __m256 xy2_ab = _mm256_unpackhi_ps(a, b), xy2_cd = _mm256_unpackhi_ps(c, d);
    _mm256_storeu_ps(x1 + i, _mm256_shuffle_ps(xy1_ab, xy1_cd, 0x44));
    _mm256_storeu_ps(y1 + i, _mm256_shuffle_ps(xy1_ab, xy1_cd, 0xee));
    _mm256_storeu_ps(x2 + i, _mm256_shuffle_ps(xy2_ab, xy2_cd, 0x44));
    _mm256_storeu_ps(y2 + i, _mm256_shuffle_ps(xy2_ab, xy2_cd, 0xee));
  }
}
#endif

}  // namespace
}  // namespace boxloss::native
