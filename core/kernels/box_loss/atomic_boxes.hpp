// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "../../dtypes/packs.hpp"

/// Atomic addition of boxes to an array, in the array's dtype.
namespace boxloss {

/// Adds to a row's four 16-bit values as one word by compare-and-swap. Each box is rounded before
/// it is added, so that the sum of two does not depend on their order.
template <class Atomics, class E, class C>
BOXLOSS_HOST_DEVICE void add_box_as_word(E* row, const Box<C>& box) {
  static_assert(sizeof(Pack<E, 4>) == sizeof(std::uint64_t));
  Pack<E, 4> own;
  set_box_at(own, 0, box);
  auto* const word = reinterpret_cast<typename Atomics::Word*>(row);
  typename Atomics::Word expected = 0, found = 0;  // what most rows hold
  do {
    expected = found;
    auto pack = bit_cast<Pack<E, 4>>(expected);
    const Box<C> before = box_at<C>(pack, 0);
    set_box_at(pack, 0, before + box_at<C>(own, 0));
    found = Atomics::compare_and_swap(word, expected, bit_cast<typename Atomics::Word>(pack));
  } while (found != expected);
}

/// Adds one value; one of 16 bits by compare-and-swap, rounded before as above.
template <class Atomics, class E, class C>
BOXLOSS_HOST_DEVICE void add_value(E* to, C value) {
  if constexpr (sizeof(E) == 2) {
    E own;
    assign(own, value);
    auto* const bits = reinterpret_cast<unsigned short*>(to);
    unsigned short expected = 0, found = 0;
    do {
      expected = found;
      E sum;
      assign(sum, convert_to<C>(bit_cast<E>(expected)) + convert_to<C>(own));
      found = Atomics::compare_and_swap(bits, expected, bit_cast<unsigned short>(sum));
    } while (found != expected);
  } else {
    Atomics::add(to, static_cast<E>(value));
  }
}

/// `Atomics` is provided by a backend: add(float*, float), add(double*, double), and
/// compare_and_swap(address, expected, desired) of a Word and of an unsigned short, which returns
/// the old value.
template <class Atomics, class E, class C>
BOXLOSS_HOST_DEVICE void add_box_at(E* row, const Box<C>& box) {
  if constexpr (sizeof(E) == 2) {
    add_box_as_word<Atomics>(row, box);
  } else {
    add_value<Atomics>(row, box.x1);
    add_value<Atomics>(row + 1, box.y1);
    add_value<Atomics>(row + 2, box.x2);
    add_value<Atomics>(row + 3, box.y2);
  }
}

template <class Atomics, class E, class C>
BOXLOSS_HOST_DEVICE void add_box_at(E* row, const RotatedBox<C>& box) {
  add_value<Atomics>(row, box.cx);
  add_value<Atomics>(row + 1, box.cy);
  add_value<Atomics>(row + 2, box.w);
  add_value<Atomics>(row + 3, box.h);
  add_value<Atomics>(row + 4, box.angle);
}

template <class Atomics, class B>
BOXLOSS_HOST_DEVICE_CALL void add_any_box(void* data, DType dtype, std::int64_t i, B box) {
  with_outputs(data, dtype, [&](auto typed) { add_box_at<Atomics>(typed.data + i, box); });
}

template <class Atomics>
struct AtomicAdd {
  template <class E, class B>
  BOXLOSS_HOST_DEVICE void operator()(const BoxOutputs<E>& gradient, std::int64_t row,
                                      const B& box) const {
    add_box_at<Atomics>(gradient.values.data + B::kNumbers * row, box);
  }

  template <class B>
  BOXLOSS_HOST_DEVICE void operator()(const BoxOutputs<Any>& gradient, std::int64_t row,
                                      const B& box) const {
    add_any_box<Atomics>(gradient.values.data, gradient.values.dtype, B::kNumbers * row, box);
  }
};

}  // namespace boxloss
