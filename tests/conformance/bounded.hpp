// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include "math/sin_cos.hpp"

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

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

template <class C>
constexpr double kUnitRoundoff = static_cast<double>(std::numeric_limits<C>::epsilon()) / 2;

template <class C>
struct Bounded {
  double value = 0;
  double error = 0;

  Bounded() = default;
  // Implicit: coordinates, and the formula's constants, which C may have to round.
  Bounded(double constant)  // NOLINT(google-explicit-constructor)
      : value(constant),
        error(std::isfinite(constant)
                  ? std::fabs(constant - static_cast<double>(static_cast<C>(constant)))
                  : 0) {}
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
  const double unit = roundings * kUnitRoundoff<C>;
  return {value, (propagated + unit * reach + subnormal) * (1 + 0x1p-20)};
}

/// NaN and infinity are either certain, which is an error of 0, or may be missed by rounding.
template <class C>
Bounded<C> special(double value, bool certain) {
  return {value, certain ? 0 : kUnbounded};
}

/// What is NaN for certain makes all NaN that it meets, however unsure that is.
template <class C>
bool has_nan(const Bounded<C>& a, const Bounded<C>& b) {
  return (std::isnan(a.value) && a.error == 0) || (std::isnan(b.value) && b.error == 0);
}

template <class C>
constexpr double kHalfSubnormal = static_cast<double>(std::numeric_limits<C>::denorm_min()) / 2;

template <class C>
Bounded<C> operator+(const Bounded<C>& a, const Bounded<C>& b) {
  const double value = a.value + b.value;
  const double propagated = a.error + b.error;
  if (!std::isfinite(value)) return special<C>(value, propagated < kUnbounded || has_nan(a, b));
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
  if (!std::isfinite(value)) {
    return special<C>(value, (a.is_firm() && b.is_firm()) || has_nan(a, b));
  }
  const double propagated =
      std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error;
  return rounded<C>(value, propagated, std::fma(a.value, b.value, -value), kHalfSubnormal<C>);
}

template <class C>
Bounded<C> operator/(const Bounded<C>& a, const Bounded<C>& b) {
  const double value = a.value / b.value;
  if (!std::isfinite(value)) {
    return special<C>(value, (a.is_firm() && b.is_firm()) || has_nan(a, b));
  }
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
  return {quotient.value, quotient.error + 2 * kUnitRoundoff<C> * std::fabs(quotient.value)};
}

/// The outcome of a comparison, which rounding alone may turn where it is not sure.
struct Decision {
  bool holds, is_sure;
};

/// As many in C as in the oracle, unless rounding could turn it.
template <class C>
Decision compare(bool holds, const Bounded<C>& a, const Bounded<C>& b) {
  const double error = a.error + b.error;
  return {holds, !(error > 0 && std::fabs(a.value - b.value) <= error)};
}

template <class C>
Decision operator<(const Bounded<C>& a, const Bounded<C>& b) {
  return compare(a.value < b.value, a, b);
}

template <class C>
Decision operator>(const Bounded<C>& a, const Bounded<C>& b) {
  return b < a;
}

template <class C>
Decision operator<=(const Bounded<C>& a, const Bounded<C>& b) {
  return compare(a.value <= b.value, a, b);
}

inline Decision both(const Decision& a, const Decision& b) {
  const bool surely_not = (a.is_sure && !a.holds) || (b.is_sure && !b.holds);
  return {a.holds && b.holds, surely_not || (a.is_sure && b.is_sure)};
}

/// Where the condition is not sure, the bound reaches to what the other branch would have given.
template <class C>
Bounded<C> select(const Decision& condition, const Bounded<C>& a, const Bounded<C>& b) {
  const Bounded<C>& taken = condition.holds ? a : b;
  const Bounded<C>& other = condition.holds ? b : a;
  if (condition.is_sure) return taken;
  const double gap = std::fabs(taken.value - other.value);
  return {taken.value, std::isnan(gap) ? kUnbounded : std::fmax(taken.error, gap + other.error)};
}

/// Continuous, so that nothing jumps where it is not sure which of the two it is.
template <class C>
Bounded<C> smaller(const Bounded<C>& a, const Bounded<C>& b) {
  const Decision is_b = b < a;
  const Bounded<C>& taken = is_b.holds ? b : a;
  return {taken.value, is_b.is_sure ? taken.error : std::fmax(a.error, b.error)};
}

template <class C>
Bounded<C> larger(const Bounded<C>& a, const Bounded<C>& b) {
  const Decision is_b = a < b;
  const Bounded<C>& taken = is_b.holds ? b : a;
  return {taken.value, is_b.is_sure ? taken.error : std::fmax(a.error, b.error)};
}

template <class C>
Bounded<C> at_least(const Bounded<C>& value, const Bounded<C>& floor) {
  return larger(value, floor);  // of a < b ? b : a NaN is a
}

/// As core/losses has it, without a tie's half where rounding may turn it.
template <class C>
Bounded<C> halves_of_min(const Bounded<C>& a, const Bounded<C>& b) {
  const Bounded<C> one(1.0), zero(0.0);
  return select(a < b, one, zero) + select(a <= b, one, zero);
}

/// In [0, 1], however little is known of the two.
template <class C>
Bounded<C> fraction(const Bounded<C>& part, const Bounded<C>& whole) {
  if (whole.value == 0 && whole.error == 0) return part;
  const Bounded<C> quotient = part * reciprocal(whole);
  const double value = whole.value > 0 ? quotient.value : 0;
  if (!std::isfinite(value)) return quotient;
  const double whole_range = std::fmax(value, 1 - value) + 0x1p-20;
  const bool may_be_part = whole.value - whole.error <= 0x1p-126;  // float's least normal number
  return {value, may_be_part ? whole_range : std::fmin(quotient.error, whole_range)};
}

/// In [0, 1] as well. Where whole may be 0 that is all that is known: a formula multiplies it with
/// what is then next to 0.
template <class C>
Bounded<C> share(const Bounded<C>& part, const Bounded<C>& whole) {
  if (std::isnan(part.value) || std::isnan(whole.value)) return part * whole;
  const bool is_none =
      (part.value == 0 && part.error == 0) || (whole.value == 0 && whole.error == 0);
  if (is_none) return {0, 0};
  const auto in_unit = [](double x) { return std::fmin(std::fmax(x, 0), 1); };
  const double least = std::numeric_limits<C>::min(), size = std::fabs(whole.value);
  const double value = size > least ? in_unit(part.value / whole.value) : 0;
  if (!(size - whole.error > least)) return {value, std::fmax(value, 1 - value)};
  const Bounded<C> quotient = part * reciprocal(whole);
  const double up = in_unit(quotient.value + quotient.error) - value;
  return {value, std::fmax(up, value - in_unit(quotient.value - quotient.error))};
}

template <class C>
Bounded<C> least_normal(const Bounded<C>& /*x*/) {
  return std::numeric_limits<C>::min();
}

/// An elementary function: `propagated` is what its operands' errors amount to. Float's are core's
/// own, within `roundings` unit roundoffs; double's, on both sides, are within 4 units in the last
/// place on every platform whose documentation says anything.
template <class C>
Bounded<C> function_value(double value, double propagated, double roundings) {
  const double units = sizeof(C) == sizeof(double) ? 16 : roundings;
  const double own = units * kUnitRoundoff<C> * std::fabs(value);
  return {value, (propagated + own) * (1 + 0x1p-20)};
}

template <class C>
Bounded<C> exp(const Bounded<C>& x) {
  const double value = std::exp(x.value);
  if (x.value == 0 && x.error == 0) return {1, 0};  // of every device
  if (!std::isfinite(x.value)) return {value, x.error == 0 ? 0 : kUnbounded};
  Bounded<C> result = function_value<C>(value, value * std::expm1(x.error), 6);
  if (sizeof(C) == sizeof(float)) result.error += 1.7e-38;  // below that it is 0
  return result;
}

template <class C>
Bounded<C> log(const Bounded<C>& x) {
  const double value = std::log(x.value);
  if (!std::isfinite(value)) return special<C>(value, x.error == 0);
  if (!(x.error < x.value)) return {value, kUnbounded};
  return function_value<C>(value, -std::log1p(-x.error / x.value), 2);
}

/// Of a fraction, whose derivative is at most 1.
template <class C>
Bounded<C> log1p_of_fraction(const Bounded<C>& x) {
  const double value = std::log1p(x.value);
  if (!std::isfinite(value)) return special<C>(value, x.error == 0);
  return function_value<C>(value, x.error, 4);
}

/// Of x >= 0.
template <class C>
Bounded<C> log1p(const Bounded<C>& x) {
  const double value = std::log1p(x.value);
  if (!std::isfinite(value)) return special<C>(value, x.error == 0);
  if (!(x.error < 1 + x.value)) return {value, kUnbounded};
  return function_value<C>(value, -std::log1p(-x.error / (1 + x.value)), 4);
}

/// Of x <= 0.
template <class C>
Bounded<C> expm1(const Bounded<C>& x) {
  const double value = std::expm1(x.value);
  if (!std::isfinite(x.value)) return {value, x.error == 0 ? 0 : kUnbounded};
  return function_value<C>(value, std::exp(x.value) * std::expm1(x.error), 6);
}

/// Within 2 roundoffs of 1, or of the result within an eighth of a turn; whatever the angle, in
/// [-1, 1].
template <class C>
SinCos<Bounded<C>> sin_cos(const Bounded<C>& angle) {
  if (!std::isfinite(angle.value)) {
    const Bounded<C> nan = special<C>(std::nan(""), angle.error == 0);
    return {nan, nan};
  }
  const double sin = std::sin(angle.value), cos = std::cos(angle.value), e = angle.error;
  if (angle.value == 0 && e == 0) return {{0, 0}, {1, 0}};  // of every device
  const double reach = std::fabs(angle.value) + e;
  const auto bounded = [&](double value, double slope) {
    const double propagated = e * std::fmin(std::fabs(slope) + e, 1);
    const double size = reach <= 0.78 ? value : 1;
    const double error = propagated + function_value<C>(size, 0, 2).error;
    return Bounded<C>{value, std::fmin(reach <= 1e4 ? error * (1 + 0x1p-20) : 2, 2)};
  };
  return {bounded(sin, cos), bounded(cos, sin)};
}

/// Gaussians of rotated boxes are compared side by side, with sides exchanged or not, by a decision
/// of `is_across` after which the result is the same. Where rounding makes it, it was unsure, and
/// is made as the oracle does or the other way: a bound by both is found by computing twice.
struct Exchange {
  bool is_unsure = false, takes_other = false;
};
inline thread_local Exchange exchange;

/// In place of core's, by argument-dependent lookup.
template <class C>
Decision is_across(const SinCos<Bounded<C>>& turn) {
  const Decision holds = magnitude(turn.sin) > magnitude(turn.cos);
  if (holds.is_sure) return holds;
  exchange.is_unsure = true;
  return {holds.holds != exchange.takes_other, true};
}

/// Float's is within 6 unit roundoffs of the result or of 1.
template <class C>
Bounded<C> rough_log(const Bounded<C>& x) {
  Bounded<C> result = log(x);
  if (sizeof(C) == sizeof(double) || !std::isfinite(result.value)) return result;
  const double size = std::fabs(result.value);
  result.error += (6 * std::fmax(size, 1) - 2 * size) * kUnitRoundoff<C> * (1 + 0x1p-20);
  return result;
}

template <class C>
Bounded<C> sqrt(const Bounded<C>& x) {
  const double value = std::sqrt(x.value);
  if (!std::isfinite(value)) return special<C>(value, x.error == 0);
  const double below = value - std::sqrt(std::fmax(x.value - x.error, 0));
  const double above = std::sqrt(x.value + x.error) - value;  // farther where x may be 0
  return function_value<C>(value, std::fmax(below, above), 2);
}

template <class C>
Bounded<C> atan2(const Bounded<C>& y, const Bounded<C>& x) {
  const double value = x.value == 0 && y.value == 0 ? 0 : std::atan2(y.value, x.value);
  if (!std::isfinite(value)) return {value, 0};
  const double near_x = std::fmax(std::fabs(x.value) - x.error, 0);
  const double near_y = std::fmax(std::fabs(y.value) - y.error, 0);
  const double square = near_x * near_x + near_y * near_y;
  double propagated = 0;
  if (x.error > 0 || y.error > 0) {
    const double reach =
        (std::fabs(x.value) + x.error) * y.error + (std::fabs(y.value) + y.error) * x.error;
    propagated = std::fmin(reach / square, 7);  // whatever it is, it lies in [-pi, pi]
    if (std::isnan(propagated)) propagated = 7;
    // Half a turn is as good as half a turn back.
    if (x.value - x.error < 0 && std::fabs(y.value) <= y.error) propagated = 7;
  }
  return function_value<C>(value, propagated, 8);
}

}  // namespace boxloss::conformance
