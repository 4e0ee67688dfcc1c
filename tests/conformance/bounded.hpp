// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

/// Running error analysis (Wilkinson; Higham, "Accuracy and Stability of Numerical
/// Algorithms", 3.3).
///
/// A Bounded<C> stands for one number of two computations with the same formula: the oracle's, in
/// double, whose number is `value`, and another one's, in compute type C, whose number is anywhere
/// in value +- error. Putting it through the formula itself bounds how far the two results can be
/// apart, for this pair of boxes: a cancelling union or a tiny enclosure widens the bound by just
/// as much as it widens the error, and nothing else does.
///
/// With x = value and e = error, u = the unit roundoff and s = half the smallest subnormal of C:
///   a + b   e_a + e_b                             + u |x|
///   a * b   |a| e_b + |b| e_a + e_a e_b           + u |x| + s
///   a / b   (e_a + |a/b| e_b) / (|b| - e_b)       + u |x| + s,  unbounded if b may be 0
///   1 / b   as a / b, by its own function          + 2 u |x|
/// where the rounding terms take |x| plus the propagated error, and vanish where the operands are
/// exact and C holds the result: then every computation gets the same number, and no error is
/// allowed. A product and a sum contracted to one fused operation round once less, so the bound
/// holds for them.
namespace boxloss::conformance {

/// Thrown where rounding alone could turn a comparison, so that nothing can be said of the result.
struct Undecided {};

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

template <class C>
struct Bounded {
  double value = 0;
  double error = 0;

  Bounded() = default;
  // Implicit: the formula's constants, T(0) and T(1), and coordinates are exact.
  Bounded(double exact) : value(exact) {}  // NOLINT(google-explicit-constructor)
  Bounded(double v, double e) : value(v), error(e) {}

  bool may_be_zero() const { return error > 0 && std::fabs(value) <= error; }
  /// Rounding can turn it neither into 0 nor into anything at all.
  bool is_firm() const { return error < kUnbounded && !may_be_zero(); }
};

/// The result `value` of one operation whose operands' errors alone amount to `propagated`;
/// `residual` is what the operation in double rounded off.
template <class C>
Bounded<C> rounded(double value, double propagated, double residual, double subnormal) {
  using Limits = std::numeric_limits<C>;
  const double reach = std::fabs(value) + propagated;
  if (!(reach <= static_cast<double>(Limits::max()))) return {value, kUnbounded};
  const bool is_exact = residual == 0 && static_cast<double>(static_cast<C>(value)) == value;
  if (propagated == 0 && is_exact) return {value, 0};
  // For C = double both computations round. The last factor covers this analysis's own rounding.
  const double roundings = sizeof(C) == sizeof(double) ? 2 : 1;
  const double unit = roundings * static_cast<double>(Limits::epsilon()) / 2;
  return {value, (propagated + unit * reach + subnormal) * (1 + 0x1p-20)};
}

/// NaN and infinity are either certain, which is an error of 0, or may be missed by rounding.
template <class C>
Bounded<C> special(double value, bool certain) {
  return {value, certain ? 0 : kUnbounded};
}

template <class C>
constexpr double kHalfSubnormal = static_cast<double>(std::numeric_limits<C>::denorm_min()) / 2;

template <class C>
Bounded<C> operator+(const Bounded<C>& a, const Bounded<C>& b) {
  const double value = a.value + b.value;
  const double propagated = a.error + b.error;
  if (!std::isfinite(value)) return special<C>(value, propagated < kUnbounded);
  const double b_seen = value - a.value;
  const double residual = (a.value - (value - b_seen)) + (b.value - b_seen);
  return rounded<C>(value, propagated, residual, 0);
}

template <class C>
Bounded<C> operator-(const Bounded<C>& a) {
  return {-a.value, a.error};
}

template <class C>
Bounded<C> operator-(const Bounded<C>& a, const Bounded<C>& b) {
  return a + -b;
}

template <class C>
Bounded<C> operator*(const Bounded<C>& a, const Bounded<C>& b) {
  const double value = a.value * b.value;
  if (!std::isfinite(value)) return special<C>(value, a.is_firm() && b.is_firm());
  const double propagated =
      std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error;
  return rounded<C>(value, propagated, std::fma(a.value, b.value, -value), kHalfSubnormal<C>);
}

template <class C>
Bounded<C> operator/(const Bounded<C>& a, const Bounded<C>& b) {
  const double value = a.value / b.value;
  if (!std::isfinite(value)) return special<C>(value, a.is_firm() && b.is_firm());
  if (std::isinf(b.value)) return special<C>(value, a.is_firm());
  if (b.may_be_zero()) return {value, kUnbounded};
  const double propagated = (a.error + std::fabs(value) * b.error) / (std::fabs(b.value) - b.error);
  return rounded<C>(value, propagated, std::fma(-value, b.value, a.value), kHalfSubnormal<C>);
}

/// As core/math promises it: within one unit in the last place, two unit roundoffs, and never
/// exact.
template <class C>
Bounded<C> reciprocal(const Bounded<C>& x) {
  const Bounded<C> quotient = Bounded<C>(1) / x;
  if (!std::isfinite(quotient.value) || quotient.value == 0) return quotient;
  const double unit = static_cast<double>(std::numeric_limits<C>::epsilon()) / 2;
  return {quotient.value, quotient.error + 2 * unit * std::fabs(quotient.value)};
}

template <class C>
void check_decided(const Bounded<C>& a, const Bounded<C>& b) {
  const double error = a.error + b.error;
  if (error > 0 && std::fabs(a.value - b.value) <= error) throw Undecided();
}

template <class C>
bool operator<(const Bounded<C>& a, const Bounded<C>& b) {
  check_decided(a, b);
  return a.value < b.value;
}

template <class C>
bool operator>(const Bounded<C>& a, const Bounded<C>& b) {
  return b < a;
}

template <class C>
bool operator<=(const Bounded<C>& a, const Bounded<C>& b) {
  check_decided(a, b);
  return a.value <= b.value;
}

template <class C>
bool operator==(const Bounded<C>& a, const Bounded<C>& b) {
  check_decided(a, b);
  return a.value == b.value;
}

}  // namespace boxloss::conformance
