// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <boxloss/loss.hpp>
#include <boxloss/rotated_loss.hpp>

#include "losses/eps.hpp"
#include "math/box.hpp"
#include "math/rotated_box.hpp"
#include "math/sin_cos.hpp"

/// Core's formula functions (core/math/arithmetic.hpp) in ATen operators, so that the formulas run
/// on tensors unchanged, and autograd differentiates them: maximum and minimum split the gradient
/// of a tie, and a branch that `select` does not take has none.
/// Nothing here is inline, for formulas call it in a thousand places.
namespace boxloss::torch_binding {

/// One number for each pair; or a constant of the formula, the same for all.
struct TensorNumber {
  at::Tensor tensor;  ///< undefined: a constant
  double constant = 0;

  TensorNumber();
  // Implicit, as in the formulas.
  TensorNumber(at::Tensor t);  // NOLINT(google-explicit-constructor)
  TensorNumber(double value);  // NOLINT(google-explicit-constructor)
  TensorNumber(const TensorNumber&);
  TensorNumber(TensorNumber&&) noexcept;
  TensorNumber& operator=(const TensorNumber&);
  TensorNumber& operator=(TensorNumber&&) noexcept;
  ~TensorNumber();

  bool is_constant() const { return !tensor.defined(); }
  /// As a tensor to be used with `other`.
  at::Tensor beside(const TensorNumber& other) const;
};

/// One answer for each pair.
struct TensorCondition {
  at::Tensor holds;
};

TensorNumber operator-(const TensorNumber& a);
TensorNumber operator+(const TensorNumber& a, const TensorNumber& b);
TensorNumber operator-(const TensorNumber& a, const TensorNumber& b);
TensorNumber operator*(const TensorNumber& a, const TensorNumber& b);
/// By a constant, of a unit; formulas divide by `reciprocal` and `share`.
TensorNumber operator/(const TensorNumber& a, const TensorNumber& b);
TensorCondition operator>(const TensorNumber& a, const TensorNumber& b);
TensorCondition operator<(const TensorNumber& a, const TensorNumber& b);
TensorCondition both(const TensorCondition& a, const TensorCondition& b);
TensorNumber select(const TensorCondition& condition, const TensorNumber& a, const TensorNumber& b);
TensorNumber smaller(const TensorNumber& a, const TensorNumber& b);
TensorNumber larger(const TensorNumber& a, const TensorNumber& b);
TensorNumber at_least(const TensorNumber& value, const TensorNumber& floor);
TensorNumber reciprocal(const TensorNumber& a);
TensorNumber hold_constant(const TensorNumber& a);
TensorNumber exponent(const TensorNumber& value);
TensorNumber with_slope(const TensorNumber& value, const TensorNumber& slope,
                        const TensorNumber& variable);
TensorNumber exp(const TensorNumber& a);
TensorNumber log(const TensorNumber& a);
TensorNumber log1p_of_fraction(const TensorNumber& a);
TensorNumber log1p(const TensorNumber& a);
TensorNumber expm1(const TensorNumber& a);
TensorNumber share(const TensorNumber& part, const TensorNumber& whole);
SinCos<TensorNumber> sin_cos(const TensorNumber& a);
TensorNumber sqrt(const TensorNumber& a);
TensorNumber rough_log(const TensorNumber& a);
TensorNumber atan2(const TensorNumber& y, const TensorNumber& x);

using TensorBox = Box<TensorNumber>;

TensorBox values_of(const at::Tensor& boxes);
RotatedBox<TensorNumber> values_of(const at::Tensor& boxes, AngleUnit unit);

/// The formulas of pairs, compiled once for all who call them.
using TensorConstants = Constants<TensorNumber>;

TensorNumber loss_of(Loss loss, const TensorBox& pred, const TensorBox& target,
                     const TensorConstants& constants);
TensorNumber loss_of(RotatedLoss loss, const RotatedBox<TensorNumber>& pred,
                     const RotatedBox<TensorNumber>& target, const TensorConstants& constants);
TensorNumber iou_of(const TensorBox& pred, const TensorBox& target,
                    const TensorConstants& constants);
TensorNumber l1_distance(const TensorBox& pred, const TensorBox& target);

}  // namespace boxloss::torch_binding
