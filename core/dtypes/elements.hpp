// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/view.hpp>
#include <cstdint>
#include <type_traits>

#include "../math/box.hpp"
#include "../math/host_device.hpp"
#include "../math/optimization_barrier.hpp"
#include "../math/rotated_box.hpp"
#include "half.hpp"

/// Arrays of every dtype, converted to and from the compute type C in registers.
namespace boxloss {

template <class C, class E>
BOXLOSS_HOST_DEVICE C convert_to(E value) {
  return static_cast<C>(value);
}

template <class C>
BOXLOSS_HOST_DEVICE C convert_to(Half value) {
  return static_cast<C>(to_float(value));
}

template <class C>
BOXLOSS_HOST_DEVICE C convert_to(BFloat16 value) {
  return static_cast<C>(to_float(value));
}

template <class C>
BOXLOSS_HOST_DEVICE void assign(C& to, C value) {
  to = value;
}

BOXLOSS_HOST_DEVICE void assign(float& to, double value) { to = static_cast<float>(value); }
BOXLOSS_HOST_DEVICE void assign(double& to, float value) { to = value; }

template <class C>
BOXLOSS_HOST_DEVICE void assign(Half& to, C value) {
  to = to_half(static_cast<float>(value));
}

template <class C>
BOXLOSS_HOST_DEVICE void assign(BFloat16& to, C value) {
  to = to_bfloat16(static_cast<float>(value));
}

/// Values of element type E, or, for E = Any, of a dtype known at run time only.
template <class E>
struct Elements {
  const E* data;

  template <class C>
  BOXLOSS_HOST_DEVICE C get(std::int64_t i) const {
    return convert_to<C>(data[i]);
  }

  /// The values of a box of type B from element i on, `step` elements apart.
  template <class B>
  BOXLOSS_HOST_DEVICE B get_box(std::int64_t i, std::int64_t step = 1) const {
    const auto at = [&](int c) { return get<typename B::Value>(i + c * step); };
    if constexpr (B::kNumbers == 5) {
      return {at(0), at(1), at(2), at(3), at(4)};
    } else {
      return {at(0), at(1), at(2), at(3)};
    }
  }
};

struct Any {};

/// Calls `use` with the elements as the type that `dtype` names.
template <class Use>
BOXLOSS_HOST_DEVICE auto with_elements(const void* data, DType dtype, const Use& use) {
  switch (dtype) {
    case DType::kF64: return use(Elements<double>{static_cast<const double*>(data)});
    case DType::kF32: return use(Elements<float>{static_cast<const float*>(data)});
    case DType::kF16: return use(Elements<Half>{static_cast<const Half*>(data)});
    case DType::kBF16: return use(Elements<BFloat16>{static_cast<const BFloat16*>(data)});
    case DType::kU8: return use(Elements<std::uint8_t>{static_cast<const std::uint8_t*>(data)});
    case DType::kI16: return use(Elements<std::int16_t>{static_cast<const std::int16_t*>(data)});
    case DType::kI32: return use(Elements<std::int32_t>{static_cast<const std::int32_t*>(data)});
    default: return use(Elements<std::int64_t>{static_cast<const std::int64_t*>(data)});
  }
}

// Arguments by value: for a call, a GPU would have to put anything else into memory.
template <class C>
BOXLOSS_HOST_DEVICE_CALL C load_any(const void* data, DType dtype, std::int64_t i) {
  i = index_barrier(i);
  return with_elements(data, dtype, [i](auto typed) { return typed.template get<C>(i); });
}

template <class B>
BOXLOSS_HOST_DEVICE_CALL B load_any_box(const void* data, DType dtype, std::int64_t i,
                                        std::int64_t step) {
  return with_elements(data, dtype,
                       [i, step](auto typed) { return typed.template get_box<B>(i, step); });
}

template <>
struct Elements<Any> {
  const void* data;
  DType dtype;

  template <class C>
  BOXLOSS_HOST_DEVICE C get(std::int64_t i) const {
    return load_any<C>(data, dtype, i);
  }

  template <class B>
  BOXLOSS_HOST_DEVICE B get_box(std::int64_t i, std::int64_t step = 1) const {
    return load_any_box<B>(data, dtype, i, step);
  }
};

/// The same elements, of their type if that is known.
template <class E>
BOXLOSS_HOST_DEVICE Elements<E> elements_as(const Elements<Any>& of) {
  if constexpr (std::is_same_v<E, Any>) {
    return of;
  } else {
    return {static_cast<const E*>(of.data)};
  }
}

/// The value that an array of a floating dtype has where `value` is stored.
inline double stored_as(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32: return static_cast<float>(value);
    case DType::kF16: return to_float(to_half(static_cast<float>(value)));
    case DType::kBF16: return to_float(to_bfloat16(static_cast<float>(value)));
    default: return value;
  }
}

/// Elements to write: gradients and losses, of floating dtypes only.
template <class E>
struct Outputs {
  E* data;

  /// The same elements, for reading.
  BOXLOSS_HOST_DEVICE Elements<E> elements() const { return {data}; }

  template <class C>
  BOXLOSS_HOST_DEVICE void set(std::int64_t i, C value) const {
    assign(data[i], value);
  }

  template <class C>
  BOXLOSS_HOST_DEVICE void set_box(std::int64_t i, const Box<C>& value,
                                   std::int64_t step = 1) const {
    set(i, value.x1);
    set(i + step, value.y1);
    set(i + 2 * step, value.x2);
    set(i + 3 * step, value.y2);
  }
  template <class C>
  BOXLOSS_HOST_DEVICE void set_box(std::int64_t i, const RotatedBox<C>& value,
                                   std::int64_t step = 1) const {
    set(i, value.cx);
    set(i + step, value.cy);
    set(i + 2 * step, value.w);
    set(i + 3 * step, value.h);
    set(i + 4 * step, value.angle);
  }
};

template <class Use>
BOXLOSS_HOST_DEVICE void with_outputs(void* data, DType dtype, const Use& use) {
  switch (dtype) {
    case DType::kF64: return use(Outputs<double>{static_cast<double*>(data)});
    case DType::kF32: return use(Outputs<float>{static_cast<float*>(data)});
    case DType::kF16: return use(Outputs<Half>{static_cast<Half*>(data)});
    default: return use(Outputs<BFloat16>{static_cast<BFloat16*>(data)});
  }
}

template <class C>
BOXLOSS_HOST_DEVICE_CALL void store_any(void* data, DType dtype, std::int64_t i, C value) {
  with_outputs(data, dtype, [i, value](auto typed) { typed.set(i, value); });
}

template <class B>
BOXLOSS_HOST_DEVICE_CALL void store_any_box(void* data, DType dtype, std::int64_t i, B value,
                                            std::int64_t step) {
  with_outputs(data, dtype, [i, &value, step](auto typed) { typed.set_box(i, value, step); });
}

template <>
struct Outputs<Any> {
  void* data;
  DType dtype;

  BOXLOSS_HOST_DEVICE Elements<Any> elements() const { return {data, dtype}; }

  template <class C>
  BOXLOSS_HOST_DEVICE void set(std::int64_t i, C value) const {
    store_any(data, dtype, i, value);
  }

  template <class B>
  BOXLOSS_HOST_DEVICE void set_box(std::int64_t i, const B& value, std::int64_t step = 1) const {
    store_any_box(data, dtype, i, value, step);
  }
};

template <class E>
Elements<E> elements(const void* data, DType) {
  return {static_cast<const E*>(data)};
}

template <>
inline Elements<Any> elements<Any>(const void* data, DType dtype) {
  return {data, dtype};
}

template <class E>
Outputs<E> outputs(void* data, DType) {
  return {static_cast<E*>(data)};
}

template <>
inline Outputs<Any> outputs<Any>(void* data, DType dtype) {
  return {data, dtype};
}

/// A BoxView whose element type is known: raw values of box (b, slot), still in its format.
template <class E>
struct Boxes {
  Elements<E> values;
  std::int64_t image_stride, slot_stride, coordinate_stride;
  BoxFormat format;

  /// The first of the box's values.
  BOXLOSS_HOST_DEVICE std::int64_t element_of(std::int64_t b, std::int64_t slot) const {
    return b * image_stride + slot * slot_stride;
  }
  template <class B>
  BOXLOSS_HOST_DEVICE B get(std::int64_t b, std::int64_t slot) const {
    return values.template get_box<B>(element_of(b, slot), index_barrier(coordinate_stride));
  }
};

template <class E>
Boxes<E> boxes(const BoxView& view) {
  return {elements<E>(view.data, view.dtype), view.image_stride, view.slot_stride,
          view.coordinate_stride, view.format};
}

}  // namespace boxloss
