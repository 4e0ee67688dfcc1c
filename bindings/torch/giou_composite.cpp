// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <torch/library.h>

#include "giou_args.hpp"

namespace boxloss::torch_binding {
namespace {

struct Corners {
  at::Tensor x1, y1, x2, y2;
};

Corners to_corners(const at::Tensor& boxes, BoxFormat format) {
  const std::vector<at::Tensor> v = boxes.unbind(-1);
  if (format == BoxFormat::kXyxy) return {v[0], v[1], v[2], v[3]};
  if (format == BoxFormat::kXywh) return {v[0], v[1], v[0] + v[2], v[1] + v[3]};
  const at::Tensor half_w = 0.5 * v[2];
  const at::Tensor half_h = 0.5 * v[3];
  return {v[0] - half_w, v[1] - half_h, v[0] + half_w, v[1] + half_h};
}

at::Tensor guard(const at::Tensor& area, double eps, EpsMode mode) {
  if (mode == EpsMode::kAdd) return area + eps;
  // maximum, not clamp: at equality it passes half the gradient.
  return at::maximum(area, at::full({}, eps, area.options()));
}

at::Tensor formula(const Corners& p, const Corners& t, double eps, EpsMode mode) {
  const at::Tensor w = at::minimum(p.x2, t.x2) - at::maximum(p.x1, t.x1);
  const at::Tensor h = at::minimum(p.y2, t.y2) - at::maximum(p.y1, t.y1);
  const at::Tensor inter = at::where((w > 0).logical_and(h > 0), w * h, at::zeros({}, w.options()));
  const at::Tensor area_p = (p.x2 - p.x1) * (p.y2 - p.y1);
  const at::Tensor area_t = (t.x2 - t.x1) * (t.y2 - t.y1);
  const at::Tensor uni = guard(area_p + area_t - inter, eps, mode);
  const at::Tensor enclosing = guard((at::maximum(p.x2, t.x2) - at::minimum(p.x1, t.x1)) *
                                         (at::maximum(p.y2, t.y2) - at::minimum(p.y1, t.y1)),
                                     eps, mode);
  return 1 - (inter / uni - (enclosing - uni) / enclosing);
}

/// Which slots count, and for offsets the row of each slot's target; rows of excluded slots are T.
struct Slots {
  at::Tensor counted, row;
};

Slots find_slots(const GiouLossArgs& args, Pairing::Kind pairing) {
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

at::Tensor giou_loss_composite(const GiouLossArgs& args) {
  const GiouLossOptions options = check_args(args);
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

  at::Tensor loss = formula(to_corners(pred, options.pred_format),
                            to_corners(target, options.target_format), args.eps, options.eps_mode);
  const at::Tensor zero = at::zeros({}, pred.options());
  if (args.weight) {
    const at::Tensor weight = args.weight->to(type);
    loss = loss * (ragged ? gather_rows(weight, slots.row) : weight);
  }
  loss = at::where(slots.counted, loss, zero);

  switch (options.reduction) {
    case Reduction::kSum: return loss.sum();
    case Reduction::kMean: {
      const bool has_slots = loss.sym_numel() != 0 && args.target.sym_numel() != 0;
      if (!has_slots) return loss.sum();
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
  m.impl("giou_loss", giou_loss_entry<giou_loss_composite>);
}
