// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "tensor_number.hpp"

#include <ATen/ops/atan2.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "losses/formulas.hpp"
#include "losses/l1.hpp"
#include "losses/rotated/formulas.hpp"

namespace boxloss::torch_binding {

TensorNumber::TensorNumber() = default;
TensorNumber::TensorNumber(at::Tensor t) : tensor(std::move(t)) {}
TensorNumber::TensorNumber(double value) : constant(value) {}
TensorNumber::TensorNumber(const TensorNumber&) = default;
TensorNumber::TensorNumber(TensorNumber&&) noexcept = default;
TensorNumber& TensorNumber::operator=(const TensorNumber&) = default;
TensorNumber& TensorNumber::operator=(TensorNumber&&) noexcept = default;
TensorNumber::~TensorNumber() = default;

at::Tensor TensorNumber::beside(const TensorNumber& other) const {
  return is_constant() ? at::full({}, constant, other.tensor.options()) : tensor;
}

TensorNumber operator-(const TensorNumber& a) {
  return a.is_constant() ? TensorNumber(-a.constant) : TensorNumber(-a.tensor);
}

TensorNumber operator+(const TensorNumber& a, const TensorNumber& b) {
  if (a.is_constant() && b.is_constant()) return a.constant + b.constant;
  if (a.is_constant()) return b.tensor + a.constant;
  return b.is_constant() ? a.tensor + b.constant : a.tensor + b.tensor;
}

TensorNumber operator-(const TensorNumber& a, const TensorNumber& b) {
  if (a.is_constant() && b.is_constant()) return a.constant - b.constant;
  if (a.is_constant()) return a.constant - b.tensor;
  return b.is_constant() ? a.tensor - b.constant : a.tensor - b.tensor;
}

TensorNumber operator*(const TensorNumber& a, const TensorNumber& b) {
  if (a.is_constant() && b.is_constant()) return a.constant * b.constant;
  if (a.is_constant()) return b.tensor * a.constant;
  return b.is_constant() ? a.tensor * b.constant : a.tensor * b.tensor;
}

TensorNumber operator/(const TensorNumber& a, const TensorNumber& b) {
  return a.tensor / b.constant;
}

TensorCondition operator>(const TensorNumber& a, const TensorNumber& b) {
  return {at::gt(a.beside(b), b.beside(a))};
}

TensorCondition operator<(const TensorNumber& a, const TensorNumber& b) { return b > a; }

TensorCondition both(const TensorCondition& a, const TensorCondition& b) {
  return {a.holds.logical_and(b.holds)};
}

TensorNumber select(const TensorCondition& condition, const TensorNumber& a,
                    const TensorNumber& b) {
  return at::where(condition.holds, a.beside(b), b.beside(a));
}

TensorNumber smaller(const TensorNumber& a, const TensorNumber& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.constant, b.constant);
  return at::minimum(a.beside(b), b.beside(a));
}

TensorNumber larger(const TensorNumber& a, const TensorNumber& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant, b.constant);
  return at::maximum(a.beside(b), b.beside(a));
}

TensorNumber at_least(const TensorNumber& value, const TensorNumber& floor) {
  const bool is_everything = floor.constant == -std::numeric_limits<double>::infinity();
  return is_everything ? value : larger(value, floor);
}

TensorNumber reciprocal(const TensorNumber& a) {
  return a.is_constant() ? TensorNumber(1 / a.constant) : TensorNumber(a.tensor.reciprocal());
}

TensorNumber hold_constant(const TensorNumber& a) {
  return a.is_constant() ? a : TensorNumber(a.tensor.detach());
}

TensorNumber exponent(const TensorNumber& value) {
  return select(value < TensorNumber(-1000), TensorNumber(-1000), value);
}

TensorNumber with_slope(const TensorNumber& value, const TensorNumber& slope,
                        const TensorNumber& variable) {
  return value + hold_constant(slope) * (variable - hold_constant(variable));
}

TensorNumber exp(const TensorNumber& a) { return a.tensor.exp(); }
TensorNumber log(const TensorNumber& a) {
  const at::Tensor is_zero = at::eq(a.tensor, 0);  // there it has no derivative, of any order
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return a.tensor.masked_fill(is_zero, 1).log().masked_fill(is_zero, -kInfinity);
}

TensorNumber log1p_of_fraction(const TensorNumber& a) { return a.tensor.log1p(); }

TensorNumber log1p(const TensorNumber& a) { return a.tensor.log1p(); }

TensorNumber expm1(const TensorNumber& a) { return a.tensor.expm1(); }

// A clamp has its whole derivative at the ends, as it must.
TensorNumber share(const TensorNumber& part, const TensorNumber& whole) {
  const bool is_double = whole.tensor.scalar_type() == at::kDouble;
  const at::Tensor is_none = whole.tensor.abs().le(is_double ? std::numeric_limits<double>::min()
                                                             : std::numeric_limits<float>::min());
  const at::Tensor quotient = part.tensor / whole.tensor.masked_fill(is_none, 1);
  return quotient.clamp(0, 1).masked_fill(is_none, 0);
}

SinCos<TensorNumber> sin_cos(const TensorNumber& a) { return {a.tensor.sin(), a.tensor.cos()}; }

TensorNumber sqrt(const TensorNumber& a) { return a.tensor.sqrt(); }

TensorNumber rough_log(const TensorNumber& a) { return log(a); }

TensorNumber atan2(const TensorNumber& y, const TensorNumber& x) {
  return at::atan2(y.tensor, x.tensor);
}

TensorBox values_of(const at::Tensor& boxes) {
  const std::vector<at::Tensor> v = boxes.unbind(-1);
  return {v[0], v[1], v[2], v[3]};
}

RotatedBox<TensorNumber> values_of(const at::Tensor& boxes, AngleUnit unit) {
  const std::vector<at::Tensor> v = boxes.unbind(-1);
  return in_radians(RotatedBox<TensorNumber>{v[0], v[1], v[2], v[3], v[4]}, unit);
}

TensorNumber loss_of(Loss loss, const TensorBox& pred, const TensorBox& target,
                     const TensorConstants& constants) {
  return with_formula(loss, [&](auto formula) { return formula.loss(pred, target, constants); });
}

TensorNumber loss_of(RotatedLoss loss, const RotatedBox<TensorNumber>& pred,
                     const RotatedBox<TensorNumber>& target, const TensorConstants& constants) {
  return with_formula(loss, [&](auto formula) { return formula.loss(pred, target, constants); });
}

TensorNumber iou_of(const TensorBox& pred, const TensorBox& target,
                    const TensorConstants& constants) {
  return boxloss::iou_of(overlap(pred, target, constants));
}

TensorNumber l1_distance(const TensorBox& pred, const TensorBox& target) {
  return boxloss::l1_distance(pred, target);
}

}  // namespace boxloss::torch_binding
