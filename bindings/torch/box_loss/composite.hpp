// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/alias.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include "../tensor_number.hpp"
#include "../with_gradient.hpp"
#include "args.hpp"
#include "losses/eps.hpp"

/// The composite: the loss in differentiable ATen operators, with the same rules. It serves double
/// backward, forward-mode AD and function transforms. `Own::formula` gives the values of pairs.
namespace boxloss::torch_binding {

/// The last two are without tensors unless extras are asked for.
struct PairValues {
  TensorNumber loss, l1, iou;
};

/// Which slots or pairs are valid, and the rows that they read if not by position; invalid ones
/// read the row after the last. Without rows they read by position.
struct Slots {
  at::Tensor counted, pred_row, target_row;
};

template <class Own>
at::TensorOptions index_options(const LossArgs<Own>& args) {
  return args.pred.options().dtype(at::kLong);
}

template <class Own>
at::Tensor number_of_rows(const at::Tensor& list) {
  return at::scalar_tensor(list.sym_numel() / Own::kNumbers, list.options().dtype(at::kLong));
}

template <class Own>
Slots find_offsets(const LossArgs<Own>& args) {
  const at::Tensor rows = number_of_rows<Own>(args.target);
  const at::Tensor zero = at::zeros({}, index_options(args));
  const at::Tensor offsets = args.offsets->to(at::kLong);
  const at::Tensor begin = offsets.slice(0, 0, -1).clamp(zero, rows);
  const at::Tensor end = at::minimum(at::maximum(offsets.slice(0, 1), begin), rows);
  const at::Tensor row =
      begin.unsqueeze(-1) + at::arange(args.pred.sym_size(-2), index_options(args));
  const at::Tensor counted = row < end.unsqueeze(-1);
  return {counted, {}, at::where(counted, row, rows)};
}

template <class Own>
Slots find_indexed(const LossArgs<Own>& args) {
  Slots slots;
  const auto count = [&](const OptionalTensor& index, const at::Tensor& list) {
    if (!index) return at::Tensor();
    const at::Tensor row = index->to(at::kLong);
    const at::Tensor counted = at::logical_and(row >= 0, row < number_of_rows<Own>(list));
    slots.counted = slots.counted.defined() ? slots.counted.logical_and(counted) : counted;
    return row;
  };
  const auto row_of_counted = [&](const at::Tensor& row, const at::Tensor& list) {
    return row.defined() ? at::where(slots.counted, row, number_of_rows<Own>(list)) : row;
  };
  const at::Tensor pred_row = count(args.pred_index, args.pred);
  const at::Tensor target_row = count(args.target_index, args.target);
  slots.pred_row = row_of_counted(pred_row, args.pred);
  slots.target_row = row_of_counted(target_row, args.target);
  return slots;
}

template <class Own>
Slots find_slots(const LossArgs<Own>& args, Pairing::Kind pairing) {
  switch (pairing) {
    case Pairing::Kind::kDense:
      return {at::ones({}, args.pred.options().dtype(at::kBool)).expand_symint(loss_shape(args)),
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

/// The values at each slot's row of a list, to which one row of zeros is appended. Read by position
/// without rows.
inline at::Tensor gather_rows(const at::Tensor& list, const at::Tensor& row) {
  if (!row.defined()) return list;
  auto extra_shape = list.sym_sizes().vec();
  extra_shape[0] = 1;
  return at::cat({list, at::zeros_symint(extra_shape, list.options())}).index({row});
}

template <class Own>
at::Tensor gather_boxes(const at::Tensor& boxes, const at::Tensor& row) {
  return row.defined() ? gather_rows(boxes.reshape({-1, Own::kNumbers}), row) : boxes;
}

/// The loss, l1 and iou of each slot, 0 for invalid ones; the last two undefined without extras.
template <class Own>
LossesTensors slot_losses(const LossArgs<Own>& args, const typename Own::Problem& p,
                          const Slots& slots, bool extras) {
  const at::ScalarType type = compute_type(args);
  // Invalid slots become a constant box *before* the formula: masking its result would still let
  // NaN into the gradient. 0, 0, 1, 1 has area 1 in every format and at any angle, so that no eps
  // makes it 0 / 0.
  const at::Tensor constant = (at::arange(Own::kNumbers, args.pred.options()) >= 2).to(type);
  const auto counted_boxes = [&](const at::Tensor& boxes, const at::Tensor& row) {
    return at::where(slots.counted.unsqueeze(-1), gather_boxes<Own>(boxes.to(type), row), constant);
  };
  const PairValues values = Own::formula(p, converted<TensorNumber>(constants_of<double>(p)),
                                         counted_boxes(args.pred, slots.pred_row),
                                         counted_boxes(args.target, slots.target_row), extras);

  const at::Tensor zero = at::zeros({}, constant.options());
  const auto counted = [&](const TensorNumber& number) {
    return at::where(slots.counted, number.tensor, zero);
  };
  at::Tensor weight;
  if (args.weight) weight = args.weight->to(type);  // once, so that its gradients add up in `type`
  if (args.weight && args.offsets) weight = gather_rows(weight, slots.target_row);
  const auto weighted = [&](const TensorNumber& number) {
    return counted(weight.defined() ? number.tensor * weight : number.tensor);
  };
  const at::Tensor loss = weighted(values.loss);
  if (!extras) return {loss, {}, {}};
  return {loss, weighted(values.l1), counted(values.iou).detach()};
}

/// Converts one value for each slot to one for each row of the unreduced loss.
template <class Own>
at::Tensor by_row(const LossArgs<Own>& args, const Slots& slots, const at::Tensor& values) {
  if (!args.offsets) return values;
  const at::Tensor rows = at::zeros_symint({args.target.sym_size(0) + 1}, values.options());
  return at::index_put(rows, {slots.target_row}, values).slice(0, 0, -1);
}

template <class Own>
at::Tensor total(const LossArgs<Own>& args, const at::Tensor& values) {
  const bool by_set = args.index() != nullptr && args.index()->dim() == 2;
  return by_set ? values.sum(-1) : values.sum();
}

/// The divisor of each reduced loss: 1 if nothing is divided, or no pair is valid.
template <class Own>
at::Tensor divisor_of(const LossArgs<Own>& args, const typename Own::Problem& p,
                      const Slots& slots) {
  const at::TensorOptions type = args.pred.options().dtype(compute_type(args));
  if (p.reduction != Reduction::kMean) return at::ones_symint(reduced_shape(args), type);
  const at::Tensor count = total(args, slots.counted);
  const at::Tensor divisor = args.normalizer ? args.normalizer->detach() : count;
  return at::where(count > 0, divisor, 1).to(compute_type(args));
}

template <class Own>
at::Tensor reduced(const LossArgs<Own>& args, const typename Own::Problem& p, const Slots& slots,
                   const at::Tensor& values) {
  if (p.reduction == Reduction::kNone) return by_row(args, slots, values);
  if (p.reduction == Reduction::kSum) return total(args, values);
  return total(args, values) / divisor_of(args, p, slots);
}

template <class Own>
at::Tensor loss_composite(const LossArgs<Own>& args) {
  const auto p = checked(args, false);
  const Slots slots = find_slots(args, p.pairing.kind);
  return reduced(args, p, slots, std::get<0>(slot_losses(args, p, slots, false)));
}

template <class Own>
LossesTensors losses_composite(const LossArgs<Own>& args) {
  const auto p = checked(args, true);
  const Slots slots = find_slots(args, p.pairing.kind);
  const auto [loss, l1, iou] = slot_losses(args, p, slots, true);
  return {reduced(args, p, slots, loss), reduced(args, p, slots, l1), by_row(args, slots, iou)};
}

/// The composite's gradients by the requested ones of pred, target and weight; undefined for the
/// others.
template <class Own>
LossGradientTensors differentiate(const IncomingTensors& grads, const LossArgs<Own>& args,
                                  const Wanted& wanted, bool creates_graph) {
  using torch::autograd::variable_list;
  variable_list inputs, outputs, by_outputs;
  if (wanted[0]) inputs.push_back(args.pred);
  if (wanted[1]) inputs.push_back(args.target);
  if (wanted[2]) inputs.push_back(*args.weight);
  if (inputs.empty()) return {};
  if (grads.l1) {
    const auto [loss, l1, iou] = losses_composite(args);
    if (grads.loss) outputs.push_back(loss);
    outputs.push_back(l1);
  } else {
    outputs.push_back(loss_composite(args));
  }
  if (grads.loss) by_outputs.push_back(*grads.loss);
  if (grads.l1) by_outputs.push_back(*grads.l1);
  const variable_list found = torch::autograd::grad(outputs, inputs, by_outputs,
                                                    /*retain_graph=*/std::nullopt, creates_graph);
  auto next = found.begin();
  const auto gradient = [&](bool is_wanted) { return is_wanted ? *next++ : at::Tensor(); };
  const at::Tensor pred = gradient(wanted[0]), target = gradient(wanted[1]);
  return {pred, target, gradient(wanted[2])};
}

/// The private operators by the composite; l1 and iou are undefined without extras.
template <class Own>
ForwardTensors composite_forward(const LossArgs<Own>& args, bool extras) {
  const auto p = checked(args, extras);
  at::Tensor loss, l1, iou;
  if (extras) {
    std::tie(loss, l1, iou) = losses_composite(args);
  } else {
    loss = loss_composite(args);
  }
  const at::Tensor scale = divisor_of(args, p, find_slots(args, p.pairing.kind)).reciprocal();
  const auto packed = [](const at::Tensor& t) { return t.defined() ? t.contiguous() : t; };
  return {packed(loss), scale, packed(l1), packed(iou)};
}

/// Its gradients, themselves differentiable; undefined where not wanted.
template <class Own>
LossGradientTensors differentiable_gradients(const IncomingTensors& grads,
                                             const LossArgs<Own>& args, const Wanted& wanted) {
  // By aliases, since the inputs may depend on each other, and each path must be counted once.
  LossArgs<Own> aliases = args;
  aliases.pred = at::alias(args.pred);
  aliases.target = at::alias(args.target);
  if (args.weight) aliases.weight = at::alias(*args.weight);
  return differentiate(grads, aliases, wanted, /*creates_graph=*/true);
}

template <class Own>
LossGradientTensors composite_backward(const IncomingTensors& grads, const LossArgs<Own>& args,
                                       const Wanted& wanted) {
  const Recording recording;
  const auto leaf = [](const at::Tensor& input, bool is_wanted) {
    return input.detach().requires_grad_(is_wanted);
  };
  LossArgs<Own> leaves = args;
  leaves.pred = leaf(args.pred, wanted[0]);
  leaves.target = leaf(args.target, wanted[1]);
  if (args.weight) leaves.weight = leaf(*args.weight, wanted[2]);
  const auto [pred, target, weight] = differentiate(grads, leaves, wanted, /*creates_graph=*/false);
  const LossGradientTensors results = empty_gradients(args, wanted);
  const auto& [d_pred, d_target, d_weight] = results;
  if (wanted[0]) d_pred.copy_(pred);
  if (wanted[1]) d_target.copy_(target);
  if (wanted[2]) d_weight.copy_(weight);
  return results;
}

}  // namespace boxloss::torch_binding
