// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "losses/eps.hpp"
#include "math/box.hpp"
#include "math/rotated_box.hpp"
#include "math/sin_cos.hpp"

/// Core's formula functions (core/math/arithmetic.hpp) in ATen operators, so that the formulas run
/// on tensors unchanged, and autograd differentiates them: maximum and minimum split the gradient
/// of a tie, and a branch that `select` does not take has none.
namespace boxloss::torch_binding {

/// One number for each pair; or a constant of the formula, the same for all.
struct TensorNumber {
  at::Tensor tensor;  ///< undefined: a constant
  double constant = 0;

  TensorNumber() = default;
  // Implicit, as in the formulas.
  TensorNumber(at::Tensor t) : tensor(std::move(t)) {}  // NOLINT(google-explicit-constructor)
  TensorNumber(double value) : constant(value) {}       // NOLINT(google-explicit-constructor)

  bool is_constant() const { return !tensor.defined(); }
  /// As a tensor to be used with `other`.
  at::Tensor beside(const TensorNumber& other) const {
    return is_constant() ? at::full({}, constant, other.tensor.options()) : tensor;
  }
};

inline TensorNumber operator-(const TensorNumber& a) {
  return a.is_constant() ? TensorNumber(-a.constant) : TensorNumber(-a.tensor);
}

inline TensorNumber operator+(const TensorNumber& a, const TensorNumber& b) {
  if (a.is_constant() && b.is_constant()) return a.constant + b.constant;
  if (a.is_constant()) return b.tensor + a.constant;
  return b.is_constant() ? a.tensor + b.constant : a.tensor + b.tensor;
}

inline TensorNumber operator-(const TensorNumber& a, const TensorNumber& b) {
  if (a.is_constant() && b.is_constant()) return a.constant - b.constant;
  if (a.is_constant()) return a.constant - b.tensor;
  return b.is_constant() ? a.tensor - b.constant : a.tensor - b.tensor;
}

inline TensorNumber operator*(const TensorNumber& a, const TensorNumber& b) {
  if (a.is_constant() && b.is_constant()) return a.constant * b.constant;
  if (a.is_constant()) return b.tensor * a.constant;
  return b.is_constant() ? a.tensor * b.constant : a.tensor * b.tensor;
}

/// By a constant, of a unit; formulas divide by `reciprocal` and `share`.
inline TensorNumber operator/(const TensorNumber& a, const TensorNumber& b) {
  return a.tensor / b.constant;
}

/// One answer for each pair.
struct TensorCondition {
  at::Tensor holds;
};

inline TensorCondition operator>(const TensorNumber& a, const TensorNumber& b) {
  return {at::gt(a.beside(b), b.beside(a))};
}

inline TensorCondition operator<(const TensorNumber& a, const TensorNumber& b) { return b > a; }

inline TensorCondition both(const TensorCondition& a, const TensorCondition& b) {
  return {a.holds.logical_and(b.holds)};
}

inline TensorNumber select(const TensorCondition& condition, const TensorNumber& a,
                           const TensorNumber& b) {
  return at::where(condition.holds, a.beside(b), b.beside(a));
}

inline TensorNumber smaller(const TensorNumber& a, const TensorNumber& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.constant, b.constant);
  return at::minimum(a.beside(b), b.beside(a));
}

inline TensorNumber larger(const TensorNumber& a, const TensorNumber& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant, b.constant);
  return at::maximum(a.beside(b), b.beside(a));
}

inline TensorNumber at_least(const TensorNumber& value, const TensorNumber& floor) {
  const bool is_everything = floor.constant == -std::numeric_limits<double>::infinity();
  return is_everything ? value : larger(value, floor);
}

inline TensorNumber reciprocal(const TensorNumber& a) {
  return a.is_constant() ? TensorNumber(1 / a.constant) : TensorNumber(a.tensor.reciprocal());
}

inline TensorNumber hold_constant(const TensorNumber& a) {
  return a.is_constant() ? a : TensorNumber(a.tensor.detach());
}

inline TensorNumber exp(const TensorNumber& a) { return a.tensor.exp(); }
inline TensorNumber log(const TensorNumber& a) {
  const at::Tensor is_zero = at::eq(a.tensor, 0);  // there it has no derivative, of any order
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return a.tensor.masked_fill(is_zero, 1).log().masked_fill(is_zero, -kInfinity);
}

inline TensorNumber log1p_of_fraction(const TensorNumber& a) { return a.tensor.log1p(); }

inline TensorNumber log1p(const TensorNumber& a) { return a.tensor.log1p(); }

inline TensorNumber expm1(const TensorNumber& a) { return a.tensor.expm1(); }

/// A clamp has its whole derivative at the ends, as it must.
inline TensorNumber share(const TensorNumber& part, const TensorNumber& whole) {
  const at::Tensor is_none = whole.tensor.abs().le(1.17549435e-38);
  const at::Tensor quotient = part.tensor / whole.tensor.masked_fill(is_none, 1);
  return quotient.clamp(0, 1).masked_fill(is_none, 0);
}

inline SinCos<TensorNumber> sin_cos(const TensorNumber& a) {
  return {a.tensor.sin(), a.tensor.cos()};
}

inline TensorNumber sqrt(const TensorNumber& a) { return a.tensor.sqrt(); }

inline TensorNumber rough_log(const TensorNumber& a) { return log(a); }

inline TensorNumber atan2(const TensorNumber& y, const TensorNumber& x) {
  return at::atan2(y.tensor, x.tensor);
}

using TensorBox = Box<TensorNumber>;

inline TensorBox values_of(const at::Tensor& boxes) {
  const std::vector<at::Tensor> v = boxes.unbind(-1);
  return {v[0], v[1], v[2], v[3]};
}

inline RotatedBox<TensorNumber> values_of(const at::Tensor& boxes, AngleUnit unit) {
  const std::vector<at::Tensor> v = boxes.unbind(-1);
  return in_radians(RotatedBox<TensorNumber>{v[0], v[1], v[2], v[3], v[4]}, unit);
}

}  // namespace boxloss::torch_binding
