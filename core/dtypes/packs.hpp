// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "../math/optimization_barrier.hpp"
#include "elements.hpp"

/// Loads and stores of boxes, as wide as their alignment allows.
namespace boxloss {

/// N consecutive elements, aligned for one access of up to 16 bytes.
template <class E, int N>
struct alignas(N * sizeof(E) < 16 ? N * sizeof(E) : 16) Pack {
  E values[N];
};

/// The widest value that a GPU loads in one instruction; it may overlay values of any type.
template <int kBytes>
struct __attribute__((may_alias)) Word {
  alignas(kBytes) std::uint32_t parts[kBytes / 4];
};

/// Makes AMD's compiler load the word in one piece, even if its elements are used separately.
template <int kBytes>
BOXLOSS_HOST_DEVICE void keep_whole([[maybe_unused]] Word<kBytes>& word) {
#if defined(__AMDGCN__)
  if constexpr (kBytes == 16) {
    using Registers = std::uint32_t __attribute__((ext_vector_type(4)));
    auto registers = bit_cast<Registers>(word);
    asm("" : "+v"(registers));
    word = bit_cast<Word<kBytes>>(registers);
  }
#endif
}

template <class E, int N>
BOXLOSS_HOST_DEVICE Pack<E, N> load_pack(const E* address) {
  constexpr int kBytes = sizeof(Pack<E, N>);
  constexpr int kWordBytes = kBytes < 16 ? kBytes : 16;
  constexpr int kWords = kBytes / kWordBytes;
  Word<kWordBytes> words[kWords];
  BOXLOSS_UNROLL
  for (int i = 0; i < kWords; ++i) {
    words[i] = reinterpret_cast<const Word<kWordBytes>*>(address)[i];
    keep_whole(words[i]);
  }
  Pack<E, N> pack;
  __builtin_memcpy(&pack, words, sizeof(pack));
  return pack;
}

template <class C, class E, int N>
BOXLOSS_HOST_DEVICE Box<C> box_at(const Pack<E, N>& pack, int i) {
  return {convert_to<C>(pack.values[4 * i]), convert_to<C>(pack.values[4 * i + 1]),
          convert_to<C>(pack.values[4 * i + 2]), convert_to<C>(pack.values[4 * i + 3])};
}

template <class C, class E, int N>
BOXLOSS_HOST_DEVICE void set_box_at(Pack<E, N>& pack, int i, const Box<C>& box) {
  assign(pack.values[4 * i], box.x1);
  assign(pack.values[4 * i + 1], box.y1);
  assign(pack.values[4 * i + 2], box.x2);
  assign(pack.values[4 * i + 3], box.y2);
}

template <class E, int N>
BOXLOSS_HOST_DEVICE void store_pack(E* address, const Pack<E, N>& pack) {
  constexpr int kBytes = sizeof(Pack<E, N>);
  constexpr int kWordBytes = kBytes < 16 ? kBytes : 16;
  constexpr int kWords = kBytes / kWordBytes;
  Word<kWordBytes> words[kWords];
  __builtin_memcpy(words, &pack, sizeof(pack));
  BOXLOSS_UNROLL
  for (int i = 0; i < kWords; ++i) {
    reinterpret_cast<Word<kWordBytes>*>(address)[i] = words[i];
  }
}

template <class E, int N>
bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % alignof(Pack<E, N>) == 0;
}

/// Boxes with any strides: by one wide load each where every row is aligned for it.
template <class E>
struct StridedBoxes {
  Boxes<E> boxes;
  bool rows_aligned;

  template <class B>
  BOXLOSS_HOST_DEVICE B get(std::int64_t b, std::int64_t slot) const {
    if constexpr (B::kNumbers == 4) {
      if (flag_barrier(rows_aligned)) {
        return box_at<typename B::Value>(
            load_pack<E, 4>(boxes.values.data + boxes.element_of(b, slot)), 0);
      }
    }
    return boxes.template get<B>(b, slot);
  }
};

template <>
struct StridedBoxes<Any> {
  Boxes<Any> boxes;

  template <class B>
  BOXLOSS_HOST_DEVICE B get(std::int64_t b, std::int64_t slot) const {
    return boxes.get<B>(b, slot);
  }
};

template <class E>
StridedBoxes<E> strided_boxes(const BoxView& view) {
  const bool rows_aligned = is_aligned<E, 4>(view.data) && view.image_stride % 4 == 0 &&
                            view.slot_stride % 4 == 0 && view.coordinate_stride == 1;
  return {boxes<E>(view), rows_aligned};
}

template <>
inline StridedBoxes<Any> strided_boxes<Any>(const BoxView& view) {
  return {boxes<Any>(view)};
}

/// Contiguous boxes to write, likewise.
template <class E>
struct BoxOutputs {
  Outputs<E> values;
  bool rows_aligned;

  template <class C>
  BOXLOSS_HOST_DEVICE void set(std::int64_t row, const Box<C>& box) const {
    if (!flag_barrier(rows_aligned)) return values.set_box(4 * row, box);
    Pack<E, 4> pack;
    set_box_at(pack, 0, box);
    store_pack(values.data + 4 * row, pack);
  }
  template <class C>
  BOXLOSS_HOST_DEVICE void set(std::int64_t row, const RotatedBox<C>& box) const {
    values.set_box(5 * row, box);
  }
};

template <>
struct BoxOutputs<Any> {
  Outputs<Any> values;

  template <class B>
  BOXLOSS_HOST_DEVICE void set(std::int64_t row, const B& box) const {
    values.set_box(B::kNumbers * row, box);
  }
};

template <class E>
BoxOutputs<E> box_outputs(void* data, DType dtype) {
  return {outputs<E>(data, dtype), is_aligned<E, 4>(data)};
}

template <>
inline BoxOutputs<Any> box_outputs<Any>(void* data, DType dtype) {
  return {outputs<Any>(data, dtype)};
}

}  // namespace boxloss
