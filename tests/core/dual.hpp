// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "conformance/bounded.hpp"
#include "math/arithmetic.hpp"

/// Numbers that carry their derivatives, for formulas to be differentiated by running them. At a
/// tie of min or max each side gets half.
namespace boxloss {

/// A number, and its derivatives by the eight coordinates of a pair, each with a bound of its
/// error.
struct Dual {
  using Number = conformance::Bounded<double>;

  Number value;
  std::array<Number, 8> d{};

  Dual() = default;
  // Implicit: the formula's constants.
  Dual(double constant) : value(constant) {}  // NOLINT(google-explicit-constructor)

  /// Coordinate i of the pair.
  static Dual variable(double value, std::size_t i) {
    Dual result(value);
    result.d[i] = 1.0;
    return result;
  }
};

/// by * d, but 0 where nothing depends on the coordinate, were `by` infinite.
inline Dual::Number along(const Dual::Number& by, const Dual::Number& d) {
  return d.value == 0 && d.error == 0 ? Dual::Number(0.0) : by * d;
}

/// A function of a and b, with its derivatives by them.
inline Dual chain(const Dual::Number& value, const Dual& a, const Dual::Number& by_a, const Dual& b,
                  const Dual::Number& by_b) {
  Dual result;
  result.value = value;
  for (std::size_t i = 0; i < result.d.size(); ++i) {
    result.d[i] = along(by_a, a.d[i]) + along(by_b, b.d[i]);
  }
  return result;
}

inline Dual operator+(const Dual& a, const Dual& b) {
  return chain(a.value + b.value, a, 1.0, b, 1.0);
}
inline Dual operator-(const Dual& a, const Dual& b) {
  return chain(a.value - b.value, a, 1.0, b, -1.0);
}
inline Dual operator-(const Dual& a) { return Dual(0.0) - a; }
inline Dual operator*(const Dual& a, const Dual& b) {
  return chain(a.value * b.value, a, b.value, b, a.value);
}
inline bool operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
inline bool operator>(const Dual& a, const Dual& b) { return a.value > b.value; }

inline Dual reciprocal(const Dual& a) {
  const Dual::Number value = reciprocal(a.value);
  return chain(value, a, -value * value, a, 0.0);
}

/// a where a < b, b where b < a, and at a tie their mean.
inline Dual smaller(const Dual& a, const Dual& b) {
  if (a.value == b.value) return chain(a.value, a, 0.5, b, 0.5);
  return a.value < b.value ? a : b;
}
inline Dual larger(const Dual& a, const Dual& b) { return -smaller(-a, -b); }
inline Dual at_least(const Dual& a, const Dual& floor) { return larger(a, floor); }

}  // namespace boxloss
