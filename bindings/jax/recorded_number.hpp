// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include "math/sin_cos.hpp"

/// Core's formula functions (core/math/arithmetic.hpp) on numbers that write down what is done with
/// them, so that the formulas become programs for another language.
namespace boxloss::jax_binding {

/// The program: a line for each operation, its word and operands. The result of line k is %k.
class Recorder {
 public:
  explicit Recorder(int inputs) : lines_(inputs) { current = this; }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() { current = nullptr; }

  /// The name of the result.
  std::string add(const std::string& line) {
    text_ += line;
    text_ += '\n';
    return name(lines_++);
  }
  static std::string name(int line) { return std::to_string(line).insert(0, 1, '%'); }
  const std::string& text() const { return text_; }

  /// Of this thread, while there is one.
  inline static thread_local Recorder* current = nullptr;

 private:
  int lines_;  ///< the inputs count as the first
  std::string text_;
};

/// A result or input; or a constant, which is folded.
struct RecordedNumber {
  std::string name;  ///< empty: a constant
  double constant = 0;

  RecordedNumber() = default;
  RecordedNumber(std::string result) : name(std::move(result)) {}  // NOLINT(*-explicit-*)
  RecordedNumber(double value) : constant(value) {}                // NOLINT(*-explicit-*)

  bool is_constant() const { return name.empty(); }
  std::string text() const {
    if (!is_constant()) return name;
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g", constant);
    return digits;
  }
};

inline RecordedNumber input(int which) { return Recorder::name(which); }

template <class... Operands>
std::string recorded(const char* word, const Operands&... operands) {
  std::string call = word;
  ((call += ' ', call += operands.text()), ...);
  return Recorder::current->add(call);
}

struct RecordedCondition {
  std::string name;
  const std::string& text() const { return name; }
};

inline RecordedNumber operator-(const RecordedNumber& a) {
  if (a.is_constant()) return -a.constant;
  return recorded("negative", a);
}

inline RecordedNumber operator+(const RecordedNumber& a, const RecordedNumber& b) {
  if (a.is_constant() && b.is_constant()) return a.constant + b.constant;
  return recorded("add", a, b);
}

inline RecordedNumber operator-(const RecordedNumber& a, const RecordedNumber& b) {
  if (a.is_constant() && b.is_constant()) return a.constant - b.constant;
  return recorded("subtract", a, b);
}

inline RecordedNumber operator*(const RecordedNumber& a, const RecordedNumber& b) {
  if (a.is_constant() && b.is_constant()) return a.constant * b.constant;
  return recorded("multiply", a, b);
}

inline RecordedNumber operator/(const RecordedNumber& a, const RecordedNumber& b) {
  return recorded("divide", a, b);
}

inline RecordedCondition operator>(const RecordedNumber& a, const RecordedNumber& b) {
  return {recorded("greater", a, b)};
}

inline RecordedCondition operator<(const RecordedNumber& a, const RecordedNumber& b) {
  return b > a;
}

inline RecordedCondition both(const RecordedCondition& a, const RecordedCondition& b) {
  return {recorded("logical_and", a, b)};
}

inline RecordedNumber select(const RecordedCondition& condition, const RecordedNumber& a,
                             const RecordedNumber& b) {
  return recorded("where", condition, a, b);
}

inline RecordedNumber smaller(const RecordedNumber& a, const RecordedNumber& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.constant, b.constant);
  return recorded("minimum", a, b);
}

inline RecordedNumber larger(const RecordedNumber& a, const RecordedNumber& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant, b.constant);
  return recorded("maximum", a, b);
}

inline RecordedNumber at_least(const RecordedNumber& value, const RecordedNumber& floor) {
  const bool is_everything = floor.constant == -std::numeric_limits<double>::infinity();
  return is_everything ? value : larger(value, floor);
}

inline RecordedNumber reciprocal(const RecordedNumber& a) {
  if (a.is_constant()) return 1 / a.constant;
  return recorded("reciprocal", a);
}
inline RecordedNumber hold_constant(const RecordedNumber& a) {
  return recorded("stop_gradient", a);
}
inline RecordedNumber exponent(const RecordedNumber& value) {
  return select(value < RecordedNumber(-1000), RecordedNumber(-1000), value);
}

inline RecordedNumber with_slope(const RecordedNumber& value, const RecordedNumber& slope,
                                 const RecordedNumber& variable) {
  return value + hold_constant(slope) * (variable - hold_constant(variable));
}

inline RecordedNumber exp(const RecordedNumber& a) { return recorded("exp", a); }
inline RecordedNumber log(const RecordedNumber& a) { return recorded("log", a); }
inline RecordedNumber log1p_of_fraction(const RecordedNumber& a) { return recorded("log1p", a); }
inline RecordedNumber log1p(const RecordedNumber& a) { return recorded("log1p", a); }
inline RecordedNumber expm1(const RecordedNumber& a) { return recorded("expm1", a); }
inline RecordedNumber share(const RecordedNumber& part, const RecordedNumber& whole) {
  return recorded("share", part, whole);
}
inline SinCos<RecordedNumber> sin_cos(const RecordedNumber& a) {
  return {recorded("sin", a), recorded("cos", a)};
}
inline RecordedNumber sqrt(const RecordedNumber& a) { return recorded("sqrt", a); }
inline RecordedNumber atan2(const RecordedNumber& y, const RecordedNumber& x) {
  return recorded("atan2", y, x);
}

}  // namespace boxloss::jax_binding
