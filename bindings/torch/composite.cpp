// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <torch/library.h>

#include "loss_args.hpp"
#include "losses/formulas.hpp"
#include "tensor_number.hpp"

namespace boxloss::torch_binding {
namespace {

Box<TensorNumber> corners(const at::Tensor& boxes, BoxFormat format) {
  const std::vector<at::Tensor> v = boxes.unbind(-1);
  return to_corners<TensorNumber>({v[0], v[1], v[2], v[3]}, format);
}

/// Which slots count, and for offsets the row of each slot's target; rows of excluded slots are T.
struct Slots {
  at::Tensor counted, row;
};

Slots find_slots(const LossArgs& args, Pairing::Kind pairing) {
  const auto index_options = args.pred.options().dtype(at::kLong);
  const auto arange_slots = [&] { return at::arange(args.pred.sym_size(-2), index_options); };
  switch (pairing) {
    case Pairing::Kind::kDense:
      return {at::ones({}, args.pred.options().dtype(at::kBool)).expand_symint(loss_shape(args)),
              {}};
    case Pairing::Kind::kZeroPadded: return {(args.target != 0).any(-1), {}};
    case Pairing::Kind::kLengths: return {arange_slots() < args.lengths->unsqueeze(-1), {}};
    case Pairing::Kind::kMask: return {*args.mask, {}};
    case Pairing::Kind::kOffsets: break;
  }
  const at::Tensor rows = at::scalar_tensor(args.target.sym_size(0), index_options);
  const at::Tensor zero = at::zeros({}, index_options);
  const at::Tensor offsets = args.offsets->to(at::kLong);
  const at::Tensor begin = offsets.slice(0, 0, -1).clamp(zero, rows);
  const at::Tensor end = at::minimum(at::maximum(offsets.slice(0, 1), begin), rows);
  const at::Tensor row = begin.unsqueeze(-1) + arange_slots();
  const at::Tensor counted = row < end.unsqueeze(-1);
  return {counted, at::where(counted, row, rows)};
}

/// The values of each slot's target row, where row T is one more row of zeros.
at::Tensor gather_rows(const at::Tensor& values, const at::Tensor& row) {
  auto extra_shape = values.sym_sizes().vec();
  extra_shape[0] = 1;
  return at::cat({values, at::zeros_symint(extra_shape, values.options())}).index({row});
}

}  // namespace

at::Tensor box_loss_composite(const LossArgs& args) {
  const LossOptions options = check_args(args);
  const at::ScalarType type = compute_type(args);
  const Slots slots = find_slots(args, options.pairing);
  const bool ragged = options.pairing == Pairing::Kind::kOffsets;

  at::Tensor pred = args.pred.to(type);
  at::Tensor target = args.target.to(type);
  if (ragged) target = gather_rows(target, slots.row);
  // Excluded slots become a constant box *before* the formula: masking its result would still let
  // NaN into the gradient. 0, 0, 1, 1 has area 1 in every format, so that no eps makes it 0 / 0.
  const at::Tensor constant = (at::arange(4, pred.options()) >= 2).to(type);
  pred = at::where(slots.counted.unsqueeze(-1), pred, constant);
  target = at::where(slots.counted.unsqueeze(-1), target, constant);

  const auto eps = make_eps<double>(args.eps, options.eps_mode);
  at::Tensor loss = with_formula(options.loss, [&](auto formula) {
                      return formula.loss(corners(pred, options.pred_format),
                                          corners(target, options.target_format),
                                          Eps<TensorNumber>{eps.added, eps.floor, eps.value});
                    }).tensor;
  const at::Tensor zero = at::zeros({}, pred.options());
  if (args.weight) {
    const at::Tensor weight = args.weight->to(type);
    loss = loss * (ragged ? gather_rows(weight, slots.row) : weight);
  }
  loss = at::where(slots.counted, loss, zero);

  switch (options.reduction) {
    case Reduction::kSum: return loss.sum();
    case Reduction::kMean: {
      // Nothing is divided where there are no slots, as far as that is known while compiling.
      const auto is_empty = [](const at::Tensor& tensor) {
        return TORCH_GUARD_OR_FALSE(tensor.sym_numel().sym_eq(0));
      };
      if (is_empty(loss) || is_empty(args.target)) return loss.sum();
      if (args.normalizer) return loss.sum() / args.normalizer->detach().to(type);
      return loss.sum() / slots.counted.sum().clamp_min(1).to(type);
    }
    case Reduction::kNone: break;
  }
  if (!ragged) return loss;
  const at::Tensor rows = at::zeros_symint({args.target.sym_size(0) + 1}, pred.options());
  return at::index_put(rows, {slots.row}, loss).slice(0, 0, -1);
}

}  // namespace boxloss::torch_binding

TORCH_LIBRARY_IMPL(boxloss, FuncTorchBatchedDecomposition, m) {
  using namespace boxloss::torch_binding;
  m.impl("box_loss", Entries::box_loss<box_loss_composite>);
}
