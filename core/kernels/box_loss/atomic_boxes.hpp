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

/// `Atomics` is provided by a backend: add(float*, float), add(double*, double), and
/// compare_and_swap(Word*, expected, desired), which returns the old word.
template <class Atomics, class E, class C>
BOXLOSS_HOST_DEVICE void add_box_at(E* row, const Box<C>& box) {
  if constexpr (sizeof(E) == 2) {
    add_box_as_word<Atomics>(row, box);
  } else {
    Atomics::add(row, static_cast<E>(box.x1));
    Atomics::add(row + 1, static_cast<E>(box.y1));
    Atomics::add(row + 2, static_cast<E>(box.x2));
    Atomics::add(row + 3, static_cast<E>(box.y2));
  }
}

template <class Atomics, class C>
BOXLOSS_HOST_DEVICE_CALL void add_any_box(void* data, DType dtype, std::int64_t i, Box<C> box) {
  with_outputs(data, dtype, [&](auto typed) { add_box_at<Atomics>(typed.data + i, box); });
}

template <class Atomics>
struct AtomicAdd {
  template <class E, class C>
  BOXLOSS_HOST_DEVICE void operator()(const BoxOutputs<E>& gradient, std::int64_t row,
                                      const Box<C>& box) const {
    add_box_at<Atomics>(gradient.values.data + 4 * row, box);
  }

  template <class C>
  BOXLOSS_HOST_DEVICE void operator()(const BoxOutputs<Any>& gradient, std::int64_t row,
                                      const Box<C>& box) const {
    add_any_box<Atomics>(gradient.values.data, gradient.values.dtype, 4 * row, box);
  }
};

}  // namespace boxloss
