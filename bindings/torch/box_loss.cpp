// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/box_loss.hpp"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "loss.hpp"
#include "tensor_number.hpp"

/// The losses of pairs, of boxes along the axes and of rotated ones, and the same in differentiable
/// ATen operators.
namespace boxloss::torch_binding {
namespace {

using binding::AnyPairProblem;
using PairTensors = binding::PairArguments<TensorKinds>;

/// The last two are without tensors unless extras are asked for.
struct PairValues {
  TensorNumber loss, l1, iou;
};

PairValues values_of_pairs(const AnyPairProblem& p, const at::Tensor& preds,
                           const at::Tensor& targets, bool extras) {
  const auto constants = converted<TensorNumber>(constants_of<double>(p));
  if (p.is_rotated()) {
    return {loss_of(p.rotated_loss, values_of(preds, p.angle_unit),
                    values_of(targets, p.angle_unit), constants),
            {},
            {}};
  }
  const TensorBox raw_pred = values_of(preds), raw_target = values_of(targets);
  const TensorBox pred = to_corners(raw_pred, p.pred.format);
  const TensorBox target = to_corners(raw_target, p.target.format);
  PairValues values = {loss_of(p.loss, pred, target, constants), {}, {}};
  if (!extras) return values;
  values.l1 = l1_distance(raw_pred, raw_target);
  values.iou = iou_of(pred, target, constants);
  return values;
}

/// Which slots or pairs are valid, and the rows that they read if not by position; invalid ones
/// read the row after the last. Without rows they read by position.
struct Slots {
  at::Tensor counted, pred_row, target_row;
};

at::TensorOptions index_options(const PairTensors& args) {
  return args.pred.options().dtype(at::kLong);
}

at::Tensor number_of_rows(const at::Tensor& list) {
  return at::scalar_tensor(list.sym_numel() / list.sym_size(-1), list.options().dtype(at::kLong));
}

Slots find_offsets(const PairTensors& args) {
  const at::Tensor rows = number_of_rows(args.target);
  const at::Tensor zero = at::zeros({}, index_options(args));
  const at::Tensor offsets = args.offsets->to(at::kLong);
  const at::Tensor begin = offsets.slice(0, 0, -1).clamp(zero, rows);
  const at::Tensor end = at::minimum(at::maximum(offsets.slice(0, 1), begin), rows);
  const at::Tensor row =
      begin.unsqueeze(-1) + at::arange(args.pred.sym_size(-2), index_options(args));
  const at::Tensor counted = row < end.unsqueeze(-1);
  return {counted, {}, at::where(counted, row, rows)};
}

Slots find_indexed(const PairTensors& args) {
  Slots slots;
  const auto count = [&](const OptionalTensor& index, const at::Tensor& list) {
    if (!index) return at::Tensor();
    const at::Tensor row = index->to(at::kLong);
    const at::Tensor counted = at::logical_and(row >= 0, row < number_of_rows(list));
    slots.counted = slots.counted.defined() ? slots.counted.logical_and(counted) : counted;
    return row;
  };
  const auto row_of_counted = [&](const at::Tensor& row, const at::Tensor& list) {
    return row.defined() ? at::where(slots.counted, row, number_of_rows(list)) : row;
  };
  const at::Tensor pred_row = count(args.pred_index, args.pred);
  const at::Tensor target_row = count(args.target_index, args.target);
  slots.pred_row = row_of_counted(pred_row, args.pred);
  slots.target_row = row_of_counted(target_row, args.target);
  return slots;
}

Slots find_slots(const PairTensors& args, Pairing::Kind pairing) {
  switch (pairing) {
    case Pairing::Kind::kDense:
      return {at::ones({}, args.pred.options().dtype(at::kBool))
                  .expand_symint(args.pred.sym_sizes().slice(0, args.pred.dim() - 1)),
              {},
              {}};
    case Pairing::Kind::kZeroPadded: return {(args.target != 0).any(-1), {}, {}};
    case Pairing::Kind::kLengths: {
      const at::Tensor slot = at::arange(args.pred.sym_size(-2), index_options(args));
      return {slot < args.lengths->unsqueeze(-1), {}, {}};
    }
    case Pairing::Kind::kMask: return {*args.mask, {}, {}};
    case Pairing::Kind::kOffsets: return find_offsets(args);
    case Pairing::Kind::kIndexed: break;
  }
  return find_indexed(args);
}

at::Tensor gather_boxes(const at::Tensor& boxes, const at::Tensor& row) {
  if (!row.defined()) return boxes;
  return rows_or_none(boxes.reshape_symint({-1, boxes.sym_size(-1)}), 0, row);
}

/// The loss, l1 and iou of each slot, 0 for invalid ones; the last two undefined without extras.
struct SlotLosses {
  at::Tensor loss, l1, iou;
};

SlotLosses slot_losses(const PairTensors& args, const AnyPairProblem& p, const Slots& slots,
                       bool extras) {
  const at::ScalarType type = scalar_type(compute_dtype(p));
  // Invalid slots become a constant box *before* the formula: masking its result would still let
  // NaN into the gradient. 0, 0, 1, 1 has area 1 in every format and at any angle, so that no eps
  // makes it 0 / 0.
  const at::Tensor constant = (at::arange(p.numbers, args.pred.options()) >= 2).to(type);
  const auto counted_boxes = [&](const at::Tensor& boxes, const at::Tensor& row) {
    return at::where(slots.counted.unsqueeze(-1), gather_boxes(boxes.to(type), row), constant);
  };
  const PairValues values = values_of_pairs(p, counted_boxes(args.pred, slots.pred_row),
                                            counted_boxes(args.target, slots.target_row), extras);

  const at::Tensor zero = at::zeros({}, constant.options());
  const auto counted = [&](const TensorNumber& number) {
    return at::where(slots.counted, number.tensor, zero);
  };
  at::Tensor weight;
  if (args.weight) weight = args.weight->to(type);  // once, so that its gradients add up in `type`
  if (args.weight && args.offsets) weight = rows_or_none(weight, 0, slots.target_row);
  const auto weighted = [&](const TensorNumber& number) {
    return counted(weight.defined() ? number.tensor * weight : number.tensor);
  };
  const at::Tensor loss = weighted(values.loss);
  if (!extras) return {loss, {}, {}};
  return {loss, weighted(values.l1), counted(values.iou).detach()};
}

/// Converts one value for each slot to one for each row of the unreduced loss.
at::Tensor by_row(const PairTensors& args, const Slots& slots, const at::Tensor& values) {
  if (!args.offsets) return values;
  const at::Tensor rows = at::zeros_symint({args.target.sym_size(0) + 1}, values.options());
  return at::index_put(rows, {slots.target_row}, values).slice(0, 0, -1);
}

at::Tensor total(const PairTensors& args, const at::Tensor& values) {
  const OptionalTensor& index = args.pred_index ? args.pred_index : args.target_index;
  const bool by_set = index && index->dim() == 2;
  return by_set ? values.sum(-1) : values.sum();
}

/// The divisor of each reduced loss: 1 if nothing is divided, or no pair is valid.
at::Tensor divisor_of(const PairTensors& args, const AnyPairProblem& p, const Slots& slots) {
  const at::ScalarType type = scalar_type(compute_dtype(p));
  const at::Tensor count = total(args, slots.counted);
  if (p.reduction != Reduction::kMean) return at::ones_like(count, count.options().dtype(type));
  const at::Tensor divisor = args.normalizer ? args.normalizer->detach() : count;
  return at::where(count > 0, divisor, 1).to(type);
}

variable_list composite_of(const AnyPairProblem& p, const PairTensors& args, bool extras) {
  const Slots slots = find_slots(args, p.pairing.kind);
  const auto [loss, l1, iou] = slot_losses(args, p, slots, extras);
  const at::Tensor divisor = divisor_of(args, p, slots);
  const auto reduced = [&](const at::Tensor& values) {
    if (p.reduction == Reduction::kNone) return by_row(args, slots, values);
    const at::Tensor sum = total(args, values);
    return p.reduction == Reduction::kSum ? sum : sum / divisor;
  };
  variable_list results = {reduced(loss), divisor.reciprocal()};
  if (extras) results.insert(results.end(), {reduced(l1), by_row(args, slots, iou)});
  return results;
}

template <class Own>
variable_list composite(const Operator& op, Stack& arguments) {
  return composite_of(problem_of<Own>(op, arguments), tensors_of<Own>(op.arguments(arguments)),
                      Own::kHasExtras);
}

/// Under torch.use_deterministic_algorithms, on a GPU: where several pairs add to one gradient.
template <class Own>
bool must_be_deterministic(const c10::IValue* arguments) {
  if (!at::globalContext().deterministicAlgorithms()) return false;
  const PairTensors args = tensors_of<Own>(arguments);
  const bool adds_up = (args.pred_index && args.pred.requires_grad()) ||
                       (args.target_index && args.target.requires_grad());
  return adds_up && !args.pred.is_cpu() && at::GradMode::is_enabled();
}

template <class Node, class Own, class Gradient>
LossOperator& loss_of_pairs(const char* name) {
  static LossOperator loss = [&] {
    LossOperator its = loss_operator_of<Node, Own, Gradient>(name, composite<Own>);
    its.needs_composite = must_be_deterministic<Own>;
    return its;
  }();
  return loss;
}

}  // namespace

LossOperator& BoxLoss::loss() {
  return loss_of_pairs<BoxLoss, binding::BoxLoss, binding::BoxLossBackward>("boxloss::box_loss");
}
LossOperator& BoxLosses::loss() {
  return loss_of_pairs<BoxLosses, binding::BoxLosses, binding::BoxLossesBackward>(
      "boxloss::box_losses");
}
LossOperator& RotatedBoxLoss::loss() {
  return loss_of_pairs<RotatedBoxLoss, binding::RotatedBoxLoss, binding::RotatedBoxLossBackward>(
      "boxloss::rotated_box_loss");
}

}  // namespace boxloss::torch_binding
