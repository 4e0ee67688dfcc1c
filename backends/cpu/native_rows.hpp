// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/dtype.hpp>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "cpu/native_pairs.hpp"
#include "dtypes/elements.hpp"
#include "pairings/grid.hpp"

/// Boxes and weights between memory, where they are of any dtype and lie anywhere, and the arrays
/// that vector loops take. What lies in memory as such an array is used where it is.
namespace boxloss::native {

/// A row for each pair of a tile, not zeroed.
template <class T, int kWidth>
struct Rows {
  alignas(64) T values[kWidth * kTilePairs];

  Rows() {}
};

/// Rows go to and fro in dtypes that are not C's.
template <int kWidth>
using Bytes = Rows<std::uint64_t, kWidth>;

template <class C>
constexpr DType kDTypeOf = std::is_same_v<C, double> ? DType::kF64 : DType::kF32;

/// Zeroes the rows that the last block has beyond `count`.
template <class C>
void end_rows(C* rows, int width, int count) {
  std::memset(rows + width * count, 0, sizeof(C) * width * (whole_blocks(count) - count));
}

/// Calls move(place, bytes) for each row, with the row's bytes as a constant: to copy so few is
/// then a move or two.
template <class Move>
void for_each_row(std::size_t row_bytes, int count, const Move& move) {
  const auto run = [&](auto bytes) {
    for (int k = 0; k < count; ++k) move(k, bytes.value);
  };
  switch (row_bytes) {
    case 1: return run(std::integral_constant<std::size_t, 1>());
    case 2: return run(std::integral_constant<std::size_t, 2>());
    case 4: return run(std::integral_constant<std::size_t, 4>());
    case 8: return run(std::integral_constant<std::size_t, 8>());
    case 16: return run(std::integral_constant<std::size_t, 16>());
    default: return run(std::integral_constant<std::size_t, 32>());
  }
}

template <class C, int kWidth>
class RowReader {
 public:
  RowReader(const void* data, DType dtype)
      : data_(static_cast<const std::byte*>(data)), dtype_(dtype), size_(size_of(dtype)) {}

  bool is_given() const { return data_ != nullptr; }

  /// The rows that begin at these elements.
  const C* read(const Places& elements, int count) {
    const bool is_array = elements.list == nullptr && elements.step == kWidth;
    const std::byte* from = data_ + elements.first * size_;
    if (!is_array) {
      auto* const gathered = reinterpret_cast<std::byte*>(gathered_.values);
      for_each_row(kWidth * size_, count, [&](int k, std::size_t bytes) {
        std::memcpy(gathered + k * bytes, data_ + elements[k] * size_, bytes);
      });
      from = gathered;
    }
    if (is_array && dtype_ == kDTypeOf<C> && count % kBlock == 0) {
      return reinterpret_cast<const C*>(from);
    }
    vector_code<C>().read(from, dtype_, kWidth * count, rows_.values);
    end_rows(rows_.values, kWidth, count);
    return rows_.values;
  }

 private:
  const std::byte* data_;
  DType dtype_;
  std::size_t size_;
  Bytes<kWidth> gathered_;
  Rows<C, kWidth> rows_;
};

/// Rows of a contiguous output; null data: nobody wants them.
template <class C, int kWidth>
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
    auto* const converted = reinterpret_cast<std::byte*>(converted_.values);
    vector_code<C>().write(at_, kWidth * count, converted, dtype_);
    for_each_row(row_bytes_, count, [&](int k, std::size_t bytes) {
      std::memcpy(data_ + rows[k] * bytes, converted + k * bytes, bytes);
    });
  }

  /// Adds to rows that several pairs may share, one after the other, each rounded to the dtype.
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
  std::byte* data_;
  DType dtype_;
  std::size_t row_bytes_;
  C* at_ = nullptr;
  Rows<C, kWidth> rows_;
  Bytes<kWidth> converted_;
};

}  // namespace boxloss::native
