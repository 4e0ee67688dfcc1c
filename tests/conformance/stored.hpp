// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/view.hpp>
#include <cmath>

#include "bounded.hpp"
#include "dtypes/elements.hpp"
#include "losses/eps.hpp"
#include "math/box.hpp"
#include "math/rotated_box.hpp"

/// What comes before a formula and after it: numbers that are read and stored.
namespace boxloss::conformance {

struct Precision {
  int digits;
  double smallest_subnormal, smallest_normal, largest;

  double unit_roundoff() const { return std::ldexp(1.0, -digits); }
};

inline Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return {53, 0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023};
    case DType::kF32: return {24, 0x1p-149, 0x1p-126, 0x1.fffffep127};
    case DType::kF16: return {11, 0x1p-24, 0x1p-14, 0x1.ffcp15};
    default: return {8, 0x1p-133, 0x1p-126, 0x1.fep127};
  }
}

/// The bound once both computations have stored their number in `dtype`: each is rounded once more,
/// by at most half a unit in the last place. The last factor covers the oracle's way to 16 bits,
/// which leads through float. Equal numbers are stored equally. What is too large is infinite:
/// nothing is determined where only one of the two may be.
template <class C>
double stored(const Bounded<C>& x, DType dtype) {
  if (x.error == 0) return 0;
  if (!(x.error < kUnbounded)) return kUnbounded;
  const Precision precision = precision_of(dtype);
  const double size = std::fabs(x.value), unit = precision.unit_roundoff();
  const double half_ulp = std::max(unit * (size + x.error), precision.smallest_subnormal / 2);
  const double bound = (x.error + 2 * half_ulp) * (1 + 0x1p-8);
  if (!std::isfinite(size) || size + bound <= precision.largest) return bound;
  // Half a unit in the last place beyond the largest.
  return size - bound >= precision.largest * (1 + unit) ? 0 : kUnbounded;
}

/// A number that the oracle reads as it is and other implementations round to C.
template <class C>
Bounded<C> read_as(double value) {
  return std::isfinite(value) ? rounded<C>(value, 0, 0, kHalfSubnormal<C>) : Bounded<C>(value);
}

template <class C>
Bounded<C> number_at(const ArrayView& view, std::int64_t i) {
  return read_as<C>(Elements<Any>{view.data, view.dtype}.get<double>(i));
}

/// A sum of bounded numbers: to their bounds comes what adding them rounds off, in any order, at
/// most `roundings_in_c` times in C, and as often as there are numbers in double, on both sides.
template <class C>
struct BoundedSum {
  double value = 0, magnitude = 0, error = 0, count = 0;

  void add(const Bounded<C>& x) {
    value += x.value;
    magnitude += std::fabs(x.value) + x.error;
    error += x.error;
    ++count;
  }
  Bounded<C> total(double roundings_in_c) const {
    if (!std::isfinite(value)) return special<C>(value, error < kUnbounded);
    const double own = 2 * count * 0x1p-53 + roundings_in_c * kUnitRoundoff<C>;
    return {value, error + own * magnitude};
  }
};

/// Boxes are rounded to C once by everybody, so that they are exact from there on.
template <class C>
Box<Bounded<C>> exact(const Box<C>& box) {
  return {static_cast<double>(box.x1), static_cast<double>(box.y1), static_cast<double>(box.x2),
          static_cast<double>(box.y2)};
}

template <class C>
Box<C> raw_values(const BoxView& view, std::int64_t image, std::int64_t slot) {
  const Elements<Any> values{view.data, view.dtype};
  return values.get_box<Box<C>>(image * view.image_stride + slot * view.slot_stride,
                                view.coordinate_stride);
}

/// A box as it is given.
template <class C>
Box<Bounded<C>> values_of(const BoxView& view, std::int64_t image, std::int64_t slot) {
  return exact(raw_values<C>(view, image, slot));
}

/// Its corners, which everybody forms in C, too.
template <class C>
Box<Bounded<C>> corners_of(const BoxView& view, std::int64_t image, std::int64_t slot) {
  return exact(to_corners(raw_values<C>(view, image, slot), view.format));
}

/// A rotated box in radians, which everybody forms in C.
template <class C>
RotatedBox<Bounded<C>> rotated_box_of(const BoxView& view, AngleUnit unit, std::int64_t image,
                                      std::int64_t slot) {
  const Elements<Any> values{view.data, view.dtype};
  const auto number = [&](std::int64_t i) {
    return values.get<C>(image * view.image_stride + slot * view.slot_stride +
                         i * view.coordinate_stride);
  };
  const RotatedBox<C> b =
      in_radians(RotatedBox<C>{number(0), number(1), number(2), number(3), number(4)}, unit);
  const auto exactly = [](C x) { return Bounded<C>(static_cast<double>(x)); };
  return {exactly(b.cx), exactly(b.cy), exactly(b.w), exactly(b.h), exactly(b.angle)};
}

template <class C, class Problem>
Constants<Bounded<C>> bounded_constants(const Problem& p) {
  return converted<Bounded<C>>(constants_of<C>(p));
}

}  // namespace boxloss::conformance
