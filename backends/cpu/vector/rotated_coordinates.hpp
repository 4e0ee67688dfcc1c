// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/vector/coordinates.hpp"
#include "math/rotated_box.hpp"

/// Rotated boxes number by number, as coordinates.hpp has boxes along the axes.
namespace boxloss::native {
namespace {

template <class C>
BOXLOSS_HOST_DEVICE RotatedBox<C> rotated_box_at(const C* boxes, int i) {
  return {boxes[5 * i], boxes[5 * i + 1], boxes[5 * i + 2], boxes[5 * i + 3], boxes[5 * i + 4]};
}

template <class C>
BOXLOSS_HOST_DEVICE void set_box_at(C* boxes, int i, const RotatedBox<C>& box) {
  boxes[5 * i] = box.cx;
  boxes[5 * i + 1] = box.cy;
  boxes[5 * i + 2] = box.w;
  boxes[5 * i + 3] = box.h;
  boxes[5 * i + 4] = box.angle;
}

/// A block's boxes, number by number.
template <class C>
struct RotatedCoordinates {
  C cx[kBlock], cy[kBlock], w[kBlock], h[kBlock], angle[kBlock];

  BOXLOSS_HOST_DEVICE RotatedBox<C> get(int i) const {
    return {cx[i], cy[i], w[i], h[i], angle[i]};
  }
  BOXLOSS_HOST_DEVICE void set(int i, const RotatedBox<C>& box) {
    cx[i] = box.cx;
    cy[i] = box.cy;
    w[i] = box.w;
    h[i] = box.h;
    angle[i] = box.angle;
  }

  BOXLOSS_HOST_DEVICE void read(const C* boxes) {
    for_each_in_block([&](int i) BOXLOSS_INLINE { set(i, rotated_box_at(boxes, i)); });
  }
  BOXLOSS_HOST_DEVICE void write(C* boxes) const {
    for_each_in_block([&](int i) BOXLOSS_INLINE { set_box_at(boxes, i, get(i)); });
  }
};

}  // namespace
}  // namespace boxloss::native
