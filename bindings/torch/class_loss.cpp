// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include "../common/class_loss.hpp"
#include "dispatch/class_loss.hpp"
#include "loss.hpp"
#include "losses/class_loss.hpp"
#include "tensor_number.hpp"

/// The class loss, and the same in differentiable ATen operators with core's formulas.
namespace boxloss::torch_binding {
namespace {

using ClassLossTensors = binding::ClassLoss::Arguments<TensorKinds>;

/// What queries are to be: shaped as target_index.
struct RowTensors {
  at::Tensor is_counted;
  at::Tensor own;        ///< the class, or -1
  TensorNumber quality;  ///< with a last dimension of 1; where there is no class, it may be NaN
};

at::Tensor number(const c10::SymInt& size, const at::Tensor& like) {
  return at::scalar_tensor(size, like.options().dtype(at::kLong));
}

/// Where `values` are, in [0, size).
at::Tensor is_within(const at::Tensor& values, const c10::SymInt& size) {
  return at::logical_and(values >= 0, values < number(size, values));
}

RowTensors find_rows(const ClassLossTensors& a, at::ScalarType type) {
  const at::Tensor index = a.target_index.to(at::kLong);
  const c10::SymInt targets = a.labels.sym_size(0);
  const at::Tensor row = at::where(is_within(index, targets), index, number(targets, index));
  const at::Tensor label = rows_or_none(a.labels.to(at::kLong), -1, row);
  RowTensors rows = {index != kIgnored,
                     at::where(is_within(label, a.logits.sym_size(-1)), label, -1), 1.0};
  if (a.query_quality) rows.quality = a.query_quality->detach().to(type).unsqueeze(-1);
  if (a.quality) rows.quality = rows_or_none(a.quality->detach().to(type), 1, row).unsqueeze(-1);
  return rows;
}

/// Each query's loss, and what it adds to the divisor of a mean: 0 where it is left out.
struct RowLosses {
  at::Tensor loss, share;
};

RowLosses softmax_losses(const at::Tensor& x, const at::Tensor& weight, const RowTensors& rows,
                         double no_object_weight) {
  const at::Tensor has_box = rows.own >= 0;
  const at::Tensor wanted = at::where(has_box, rows.own, number(x.sym_size(-1) - 1, rows.own));
  const at::Tensor none = at::full({}, no_object_weight, x.options());
  at::Tensor share = at::where(has_box, at::ones({}, x.options()), none);
  if (weight.defined()) share = share * weight.index({wanted});
  const at::Tensor log_p = at::log_softmax(x, -1).gather(-1, wanted.unsqueeze(-1)).squeeze(-1);
  return {-log_p * share, share};
}

RowLosses sigmoid_losses(const at::Tensor& x, const at::Tensor& weight, const RowTensors& rows,
                         const ClassLossProblem& p) {
  const auto numbers = class_numbers<TensorNumber>(p);
  const at::Tensor classes = at::arange(x.sym_size(-1), rows.own.options());
  const at::Tensor is_own = rows.own.unsqueeze(-1) == classes;
  // Elsewhere NaN would come into the gradient, and what an infinite loss is multiplied by.
  TensorNumber quality = rows.quality;
  if (!quality.is_constant()) quality = at::where(is_own, quality.tensor, 1);
  const at::Tensor own = at::where(is_own, x, 0), other = at::where(is_own, 0, x);
  at::Tensor values = at::where(is_own, own_loss<TensorNumber>(numbers, own, quality).tensor,
                                other_loss<TensorNumber>(numbers, other).tensor);
  if (weight.defined()) values = values * weight;
  return {values.sum(-1), (rows.own >= 0).to(x.scalar_type())};
}

at::Tensor divisor_of(const ClassLossTensors& a, const ClassLossProblem& p,
                      const at::Tensor& share) {
  const at::Tensor shares = sums_of_sets(a.logits, share);
  if (p.reduction != Reduction::kMean) return at::ones_like(shares);
  if (a.normalizer) return a.normalizer->detach().to(shares.scalar_type()).expand_as(shares);
  return p.mode == boxloss::ClassLoss::kSoftmax ? at::where(shares != 0, shares, 1)
                                                : shares.clamp_min(1);
}

variable_list composite(const Operator& op, Stack& arguments) {
  const auto p = problem_of<binding::ClassLoss>(op, arguments);
  const auto a = tensors_of<binding::ClassLoss>(op.arguments(arguments));
  const at::ScalarType type = scalar_type(compute_dtype(p));
  const RowTensors rows = find_rows(a, type);
  // What is left out becomes a constant before the formula: masking its result would still let NaN
  // into the gradient.
  const at::Tensor x = at::where(rows.is_counted.unsqueeze(-1), a.logits.to(type), 0);
  const at::Tensor weight = a.weight ? a.weight->detach().to(type) : at::Tensor();
  const RowLosses found = p.mode == boxloss::ClassLoss::kSoftmax
                              ? softmax_losses(x, weight, rows, p.no_object_weight)
                              : sigmoid_losses(x, weight, rows, p);
  const at::Tensor loss = at::where(rows.is_counted, found.loss, 0);
  const at::Tensor divisor = divisor_of(a, p, at::where(rows.is_counted, found.share, 0));
  const bool is_reduced = p.reduction != Reduction::kNone;
  return {is_reduced ? sums_of_sets(a.logits, loss) / divisor : loss, divisor.reciprocal()};
}

}  // namespace

LossOperator& ClassLoss::loss() {
  static LossOperator loss =
      loss_operator_of<ClassLoss, binding::ClassLoss, binding::ClassLossBackward>(
          "boxloss::class_loss", composite);
  return loss;
}

}  // namespace boxloss::torch_binding
