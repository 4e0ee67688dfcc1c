// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <sstream>
#include <string>

#include "conformance/bounded.hpp"
#include "math/arithmetic.hpp"
#include "math/sin_cos.hpp"

/// Numbers that carry their derivatives, for formulas to be differentiated by running them. At a
/// tie of min or max each side gets half.
namespace boxloss {

/// A number, and its derivatives by the coordinates of a pair, eight or ten, each with a bound of
/// its error.
struct Dual {
  using Number = conformance::Bounded<double>;

  Number value;
  std::array<Number, 10> d{};

  Dual() = default;
  // Implicit: the formula's constants.
  Dual(double constant) : value(constant) {}  // NOLINT(google-explicit-constructor)
  Dual(const Number& v, const std::array<Number, 10>& by) : value(v), d(by) {}

  /// Coordinate i of the pair.
  static Dual variable(double value, std::size_t i) {
    Dual result(value);
    result.d[i] = 1.0;
    return result;
  }
};

/// by * d, but 0 where nothing depends on the coordinate, were `by` infinite; and where nothing
/// depends on what d is of, were little known of d.
inline Dual::Number along(const Dual::Number& by, const Dual::Number& d) {
  const auto is_zero = [](const Dual::Number& x) { return x.value == 0 && x.error == 0; };
  const bool is_none = is_zero(d) || (is_zero(by) && std::isfinite(d.value));
  return is_none ? Dual::Number(0.0) : by * d;
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
using conformance::Decision;

inline Decision operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
inline Decision operator>(const Dual& a, const Dual& b) { return a.value > b.value; }

inline Dual select(const Decision& condition, const Dual& a, const Dual& b) {
  Dual result;
  result.value = select(condition, a.value, b.value);
  for (std::size_t i = 0; i < result.d.size(); ++i) {
    result.d[i] = select(condition, a.d[i], b.d[i]);
  }
  return result;
}

inline Dual hold_constant(const Dual& a) {
  Dual result;
  result.value = a.value;
  return result;
}

inline Dual with_slope(const Dual& value, const Dual& slope, const Dual& variable) {
  return value + hold_constant(slope) * (variable - hold_constant(variable));
}

inline Dual reciprocal(const Dual& a) {
  const Dual::Number value = reciprocal(a.value);
  return chain(value, a, -value * value, a, 0.0);
}

inline Dual fraction(const Dual& part, const Dual& whole) {
  const Dual::Number value = fraction(part.value, whole.value), per = reciprocal(whole.value);
  return chain(value, part, per, whole, -value * per);
}

/// Of a quotient beyond [0, 1] it has no derivative, and where whole may be 0 an unknown one.
inline Dual share(const Dual& part, const Dual& whole) {
  Dual result(0.0);
  if (whole.value.value == 0 && whole.value.error == 0) return result;
  const Dual::Number per = reciprocal(whole.value), quotient = part.value * per, zero(0.0);
  const auto inside = [&](const Dual::Number& slope) {
    return select(quotient < zero, zero, select(quotient > Dual::Number(1.0), zero, slope));
  };
  result = chain(share(part.value, whole.value), part, inside(per), whole, inside(-quotient * per));
  if (!whole.value.may_be_zero()) return result;
  for (Dual::Number& d : result.d) d = {0, conformance::kUnbounded};
  return result;
}

/// a where a < b, b where b < a, and at a tie their mean.
inline Dual smaller(const Dual& a, const Dual& b) {
  const Dual::Number half(0.5), by_a = half * conformance::halves_of_min(a.value, b.value);
  return chain(smaller(a.value, b.value), a, by_a, b, Dual::Number(1.0) - by_a);
}
inline Dual larger(const Dual& a, const Dual& b) { return -smaller(-a, -b); }
inline Dual at_least(const Dual& a, const Dual& floor) { return larger(a, floor); }

inline Dual exp(const Dual& a) {
  const Dual::Number value = exp(a.value);
  return chain(value, a, value, a, 0.0);
}

inline Dual log(const Dual& a) { return chain(log(a.value), a, reciprocal(a.value), a, 0.0); }

inline Dual log1p_of_fraction(const Dual& a) {
  return chain(log1p_of_fraction(a.value), a, reciprocal(Dual::Number(1.0) + a.value), a, 0.0);
}

inline Dual log1p(const Dual& a) {
  return chain(log1p(a.value), a, reciprocal(Dual::Number(1.0) + a.value), a, 0.0);
}

inline Dual expm1(const Dual& a) { return chain(expm1(a.value), a, exp(a.value), a, 0.0); }

inline SinCos<Dual> sin_cos(const Dual& a) {
  const SinCos<Dual::Number> of = sin_cos(a.value);
  return {chain(of.sin, a, of.cos, a, 0.0), chain(of.cos, a, -of.sin, a, 0.0)};
}

inline Dual sqrt(const Dual& a) {
  const Dual::Number value = sqrt(a.value);
  return chain(value, a, Dual::Number(0.5) * reciprocal(value), a, 0.0);
}

inline Dual atan2(const Dual& y, const Dual& x) {
  const Dual::Number per = reciprocal(x.value * x.value + y.value * y.value);
  return chain(atan2(y.value, x.value), y, x.value * per, x, -y.value * per);
}

/// What came of many comparisons.
struct Tally {
  int checked = 0, wrong = 0;
  std::string first_wrong;

  void add(bool is_right, const std::string& text) {
    ++checked;
    if (!is_right && ++wrong == 1) first_wrong = text;
  }

  /// A loss with its derivatives, worked out by hand, beside the loss' own: each number may be off
  /// by its error. Nothing is compared where one is open, or a derivative known to less than that.
  void compare(const Dual& by_hand, const Dual& own, double most_error, const std::string& pair) {
    std::ostringstream text;
    text.precision(17);
    bool is_right = true;
    for (std::size_t i = 0; i <= own.d.size(); ++i) {
      const Dual::Number &got = i == 0 ? by_hand.value : by_hand.d[i - 1],
                         &expected = i == 0 ? own.value : own.d[i - 1];
      const double error = got.error + expected.error;
      if (!std::isfinite(got.value + expected.value + error)) return;
      if (i > 0 && error > most_error) return;
      if (std::fabs(got.value - expected.value) <= error) continue;
      is_right = false;
      text << "number " << i << " of loss and gradient is " << got.value << " +- " << got.error
           << ", expected " << expected.value << " +- " << expected.error << "; ";
    }
    add(is_right, text.str() + pair);
  }
};

}  // namespace boxloss
