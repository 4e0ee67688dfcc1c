// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/dtype.hpp>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "cpu/native/places.hpp"
#include "cpu/vector/vector_code.hpp"
#include "dtypes/elements.hpp"
#include "pairings/grid.hpp"

/// Converts boxes and weights between memory, with any dtype and strides, and the arrays of vector
/// loops. Memory that is already such an array is used in place.
namespace boxloss::native {

/// A row for each pair of a tile, not zeroed.
template <class T, int kWidth, int kPairs = kTilePairs>
struct Rows {
  alignas(64) T values[kWidth * kPairs];

  Rows() {}
};

/// A buffer for rows in dtypes other than C. What has one is not inlined: the many readers and
/// writers of a task would all take its place on the stack, of which a thread may have little.
template <int kWidth>
using Bytes = Rows<std::uint64_t, kWidth>;

template <class C>
constexpr DType kDTypeOf = std::is_same_v<C, double> ? DType::kF64 : DType::kF32;

/// Zeroes the padding rows of the last block, beyond `count`.
template <class C>
void end_rows(C* rows, int width, int count) {
  std::memset(rows + width * count, 0, sizeof(C) * width * (whole_blocks(count) - count));
}

/// Calls move(place, bytes) for each row. The number of bytes is the constant of a type, so that a
/// copy is one or a few moves even where `move` is not inlined.
template <class Move>
void for_each_row(std::size_t row_bytes, int count, const Move& move) {
  const auto run = [&](auto bytes) {
    for (int k = 0; k < count; ++k) move(k, bytes);
  };
  switch (row_bytes) {
    case 1: return run(std::integral_constant<std::size_t, 1>());
    case 2: return run(std::integral_constant<std::size_t, 2>());
    case 4: return run(std::integral_constant<std::size_t, 4>());
    case 5: return run(std::integral_constant<std::size_t, 5>());
    case 8: return run(std::integral_constant<std::size_t, 8>());
    case 10: return run(std::integral_constant<std::size_t, 10>());
    case 16: return run(std::integral_constant<std::size_t, 16>());
    case 20: return run(std::integral_constant<std::size_t, 20>());
    case 40: return run(std::integral_constant<std::size_t, 40>());
    default: return run(std::integral_constant<std::size_t, 32>());
  }
}

template <class C, int kWidth, int kPairs = kTilePairs>
class RowReader {
 public:
  /// The values of a row are `value_stride` elements apart.
  RowReader(const void* data, DType dtype, std::int64_t value_stride = 1)
      : data_(static_cast<const std::byte*>(data)),
        dtype_(dtype),
        size_(size_of(dtype)),
        value_stride_(value_stride) {}

  bool is_given() const { return data_ != nullptr; }

  /// The rows that begin at these elements.
  const C* read(const Places& elements, int count) {
    if (kWidth > 1 && value_stride_ != 1) return read_apart(elements, count);
    const bool is_array = elements.list == nullptr && elements.step == kWidth;
    if (!is_array) return read_scattered(elements, count);
    const std::byte* const from = data_ + elements.first * size_;
    if (dtype_ == kDTypeOf<C> && count % kBlock == 0) return reinterpret_cast<const C*>(from);
    vector_code<C>().read(from, dtype_, kWidth * count, rows_.values);
    end_rows(rows_.values, kWidth, count);
    return rows_.values;
  }

  /// Which what was read lies in, if it is not used in place.
  C* buffer() { return rows_.values; }

 private:
  __attribute__((noinline)) const C* read_scattered(const Places& elements, int count) {
    Bytes<kWidth> buffer;
    auto* const gathered = reinterpret_cast<std::byte*>(buffer.values);
    for_each_row(kWidth * size_, count, [&](int k, auto bytes) {
      std::memcpy(gathered + k * bytes, data_ + elements[k] * size_, bytes);
    });
    vector_code<C>().read(gathered, dtype_, kWidth * count, rows_.values);
    end_rows(rows_.values, kWidth, count);
    return rows_.values;
  }

  __attribute__((noinline)) const C* read_apart(const Places& elements, int count) {
    if (elements.are_neighbours()) {
      const std::byte* const from = data_ + elements.first * size_;
      vector_code<C>().read_columns(from, dtype_, value_stride_, kWidth, count, rows_.values);
    } else {
      Bytes<kWidth> buffer;
      auto* const gathered = reinterpret_cast<std::byte*>(buffer.values);
      for_each_row(size_, count, [&](int k, auto bytes) {
        for (int i = 0; i < kWidth; ++i) {
          std::memcpy(gathered + (kWidth * k + i) * bytes,
                      data_ + (elements[k] + i * value_stride_) * size_, bytes);
        }
      });
      vector_code<C>().read(gathered, dtype_, kWidth * count, rows_.values);
    }
    end_rows(rows_.values, kWidth, count);
    return rows_.values;
  }

  const std::byte* data_;
  DType dtype_;
  std::size_t size_;
  std::int64_t value_stride_;
  Rows<C, kWidth, kPairs> rows_;
};

/// Rows of a contiguous output; null data if not requested.
template <class C, int kWidth, int kPairs = kTilePairs>
class RowWriter {
 public:
  RowWriter(void* data, DType dtype)
      : data_(static_cast<std::byte*>(data)), dtype_(dtype), row_bytes_(kWidth * size_of(dtype)) {}

  bool is_wanted() const { return data_ != nullptr; }

  /// Where to write these rows, before `put`.
  C* rows(const Places& rows, int count) {
    const bool is_there =
        is_wanted() && rows.are_neighbours() && dtype_ == kDTypeOf<C> && count % kBlock == 0;
    at_ = is_there ? reinterpret_cast<C*>(data_ + rows.first * row_bytes_) : rows_.values;
    return at_;
  }

  void put(const Places& rows, int count) {
    if (!is_wanted() || at_ != rows_.values) return;
    if (rows.are_neighbours()) {
      return vector_code<C>().write(at_, kWidth * count, data_ + rows.first * row_bytes_, dtype_);
    }
    put_scattered(rows, count);
  }

  /// For values that do not lie as rows.
  C* buffer() { return rows_.values; }
  const C* buffer() const { return rows_.values; }

  /// Adds to rows that several pairs may share, in order, each rounded to the dtype.
  void add(const Places& rows, int count) {
    with_outputs(data_, dtype_, [&](auto outputs) {
      for (int k = 0; k < count; ++k) {
        for (int i = 0; i < kWidth; ++i) {
          const std::int64_t at = kWidth * rows[k] + i;
          outputs.set(at, outputs.elements().template get<C>(at) + at_[kWidth * k + i]);
        }
      }
    });
  }

  void zero(const RowRange& rows) const {
    if (!is_wanted() || rows.begin >= rows.end) return;
    std::memset(data_ + rows.begin * row_bytes_, 0, (rows.end - rows.begin) * row_bytes_);
  }

 private:
  __attribute__((noinline)) void put_scattered(const Places& rows, int count) const {
    Bytes<kWidth> buffer;
    auto* const converted = reinterpret_cast<std::byte*>(buffer.values);
    vector_code<C>().write(at_, kWidth * count, converted, dtype_);
    for_each_row(row_bytes_, count, [&](int k, auto bytes) {
      std::memcpy(data_ + rows[k] * bytes, converted + k * bytes, bytes);
    });
  }

  std::byte* data_;
  DType dtype_;
  std::size_t row_bytes_;
  C* at_ = nullptr;
  Rows<C, kWidth, kPairs> rows_;
};

/// The gradient of boxes of kNumbers values: rows or, if it keeps strides, values that lie as those
/// of the boxes.
template <class C, int kNumbers, int kPairs = kTilePairs>
class BoxWriter {
 public:
  BoxWriter(void* data, const BoxView& boxes, bool keeps_strides)
      : rows_(data, boxes.dtype),
        keeps_strides_(keeps_strides),
        data_(static_cast<std::byte*>(data)),
        boxes_(boxes),
        size_(size_of(boxes.dtype)) {}

  bool is_wanted() const { return rows_.is_wanted(); }

  /// Where to write these rows, before `put`.
  C* rows(const Places& rows, int count) {
    return keeps_strides_ ? rows_.buffer() : rows_.rows(rows, count);
  }

  /// `elements` is where the boxes begin.
  void put(const Places& elements, const Places& rows, int count) {
    if (!keeps_strides_) return rows_.put(rows, count);
    if (is_wanted()) put_apart(elements, count);
  }

  /// As RowWriter does.
  void add(const Places& rows, int count) { rows_.add(rows, count); }

  /// Rows of one image.
  void zero(const RowRange& rows) const {
    if (!keeps_strides_) return rows_.zero(rows);
    if (!is_wanted() || rows.begin >= rows.end) return;
    const std::int64_t count = rows.end - rows.begin, b = rows.begin / boxes_.slots;
    const std::int64_t slot = rows.begin - b * boxes_.slots;
    const std::int64_t first = b * boxes_.image_stride + slot * boxes_.slot_stride;
    for (int i = 0; i < kNumbers; ++i) {
      std::byte* const column = data_ + (first + i * boxes_.coordinate_stride) * size_;
      if (boxes_.slot_stride == 1) {
        std::memset(column, 0, count * size_);
        continue;
      }
      for (std::int64_t k = 0; k < count; ++k) {
        std::memset(column + k * boxes_.slot_stride * size_, 0, size_);
      }
    }
  }

 private:
  void put_apart(const Places& elements, int count) const {
    if (elements.are_neighbours()) {
      return vector_code<C>().write_columns(rows_.buffer(), kNumbers, count,
                                            data_ + elements.first * size_, boxes_.dtype,
                                            boxes_.coordinate_stride);
    }
    with_outputs(data_, boxes_.dtype, [&](auto outputs) {
      for (int k = 0; k < count; ++k) {
        for (int i = 0; i < kNumbers; ++i) {
          outputs.set(elements[k] + i * boxes_.coordinate_stride, rows_.buffer()[kNumbers * k + i]);
        }
      }
    });
  }

  RowWriter<C, kNumbers, kPairs> rows_;
  bool keeps_strides_;
  std::byte* data_;
  const BoxView& boxes_;
  std::size_t size_;
};

}  // namespace boxloss::native
