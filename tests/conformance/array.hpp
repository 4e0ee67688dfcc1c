// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/dtype.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "dtypes/elements.hpp"

namespace boxloss::conformance {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Values of any dtype on the host, set and read as doubles.
class Array {
 public:
  Array() = default;
  Array(DType dtype, std::int64_t count)
      : dtype_(dtype), bytes_(static_cast<std::size_t>(count) * size_of(dtype)) {}

  DType dtype() const { return dtype_; }
  std::int64_t count() const { return static_cast<std::int64_t>(bytes_.size() / size_of(dtype_)); }
  std::size_t size_bytes() const { return bytes_.size(); }

  /// Null when empty, as a framework's empty tensor is.
  void* data() { return bytes_.empty() ? nullptr : bytes_.data(); }
  const void* data() const { return bytes_.empty() ? nullptr : bytes_.data(); }

  double get(std::int64_t i) const { return Elements<Any>{data(), dtype_}.get<double>(i); }

  /// Rounds to the dtype; an integer takes its largest value in place of NaN and infinity.
  void set(std::int64_t i, double value) {
    switch (dtype_) {
      case DType::kU8: return set_integer<std::uint8_t>(i, value);
      case DType::kI16: return set_integer<std::int16_t>(i, value);
      case DType::kI32: return set_integer<std::int32_t>(i, value);
      case DType::kI64: return set_integer<std::int64_t>(i, value);
      default: Outputs<Any>{data(), dtype_}.set(i, value);
    }
  }

  friend bool operator==(const Array& a, const Array& b) {
    return a.dtype_ == b.dtype_ && a.bytes_ == b.bytes_;
  }

 private:
  template <class T>
  void set_integer(std::int64_t i, double value) {
    static_cast<T*>(data())[i] =
        std::isfinite(value) ? static_cast<T>(value) : std::numeric_limits<T>::max();
  }

  DType dtype_ = DType::kF32;
  std::vector<std::byte> bytes_;
};

}  // namespace boxloss::conformance
