// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include "../common/distribution_loss.hpp"
#include "boxloss/max_iou_match.hpp"
#include "loss.hpp"
#include "losses/distribution_loss.hpp"
#include "tensor_number.hpp"

/// The losses of distributions, and the same in differentiable ATen operators.
namespace boxloss::torch_binding {
namespace {

using DistributionLossTensors = binding::DistributionLoss::Arguments<TensorKinds>;

/// Which queries count, and which of these are matched: shaped as target_index.
struct RowTensors {
  at::Tensor target, is_matched, is_counted;
};

RowTensors find_rows(const DistributionLossTensors& a, bool is_fgl) {
  const at::Tensor target = a.target_index.to(at::kLong);
  at::Tensor is_matched = target >= 0;
  if (is_fgl) {
    const auto rows = at::scalar_tensor(a.target->sym_size(0), target.options());
    is_matched = is_matched.logical_and(target < rows);
  }
  return {target, is_matched, is_fgl ? is_matched : target != kIgnored};
}

/// (..., 4): left, top, right, bottom; of queries that are not matched any number, or NaN.
at::Tensor offsets_of(const DistributionLossTensors& a, const RowTensors& rows,
                      at::ScalarType type) {
  const at::Tensor targets = a.target->detach().to(type);
  const at::Tensor last = at::scalar_tensor(targets.sym_size(0), rows.target.options());
  const at::Tensor row = at::where(rows.is_matched, rows.target, last);
  const auto target = rows_or_none(targets, 0, row).split(2, -1);
  const auto reference = a.reference->detach().to(type).split(2, -1);
  std::vector<at::Tensor> offsets;
  for (const bool is_end : {false, true}) {
    offsets.push_back(side_offset<TensorNumber>({reference[0], reference[1]},
                                                {target[0], target[1]}, is_end, a.reg_scale)
                          .tensor);
  }
  return at::cat(offsets, -1);
}

/// (..., 4): the cross-entropy of each side towards two bins.
at::Tensor entropies(const DistributionLossTensors& a, const RowTensors& rows,
                     const at::Tensor& log_p) {
  const at::Tensor edges = a.edges->detach().to(log_p.scalar_type());
  const at::Tensor low = edges.select(0, 0), high = edges.select(0, -1);
  const at::Tensor given = offsets_of(a, rows, log_p.scalar_type());
  const at::Tensor offset = within<TensorNumber>(given, low, high).tensor;
  const at::Tensor last = at::scalar_tensor(edges.sym_size(0) - 2, rows.target.options());
  const at::Tensor beyond = at::searchsorted(edges, offset.contiguous(), /*out_int32=*/false,
                                             /*right=*/true);
  const at::Tensor left = at::minimum((beyond - 1).clamp_min(0), last);
  const auto shares =
      bin_shares<TensorNumber>(offset, edges.index({left}), edges.index({left + 1}));
  const auto of_bin = [&](const at::Tensor& bin) {
    return log_p.gather(-1, bin.unsqueeze(-1)).squeeze(-1);
  };
  return -(shares.left.tensor * of_bin(left) + shares.right.tensor * of_bin(left + 1));
}

at::Tensor by_sides(const at::Tensor& corners) {
  return corners.unflatten_symint(-1, {4, corners.sym_size(-1) / 4});
}

/// What matched and other queries' losses are multiplied by: (2, sets).
std::array<at::Tensor, 2> scales_of(const DistributionLossTensors& a,
                                    const DistributionLossProblem& p, const at::Tensor& matched,
                                    const at::Tensor& others) {
  const at::Tensor one = at::ones_like(matched);
  if (p.reduction != Reduction::kMean) return {one, one};
  if (a.normalizer) {
    const at::Tensor divisor = a.normalizer->detach().to(matched.scalar_type());
    return {at::where(matched > 0, divisor.reciprocal(), 0), one};
  }
  if (p.mode == boxloss::DistributionLoss::kFgl) return {matched.clamp_min(1).reciprocal(), one};
  // As core has it: one root of each count cancels.
  const at::Tensor roots = matched.sqrt() + others.sqrt();
  const auto share = [&](const at::Tensor& count) {
    return at::where(count > 0, (4 * count.sqrt() * roots).reciprocal(), 0);
  };
  return {share(matched), share(others)};
}

variable_list composite(const Operator& op, Stack& arguments) {
  const auto p = problem_of<binding::DistributionLoss>(op, arguments);
  const auto a = tensors_of<binding::DistributionLoss>(op.arguments(arguments));
  const bool is_fgl = p.mode == boxloss::DistributionLoss::kFgl;
  const at::ScalarType type = scalar_type(compute_dtype(p));
  const RowTensors rows = find_rows(a, is_fgl);
  // What does not count becomes a constant first: masking its result would still let NaN into the
  // gradient.
  const auto counted = [&](const at::Tensor& corners) {
    return by_sides(at::where(rows.is_counted.unsqueeze(-1), corners.to(type), 0));
  };
  at::Tensor weight = a.quality ? a.quality->detach().to(type) : at::ones({}, a.logits.options());
  at::Tensor sides;
  if (is_fgl) {
    sides = entropies(a, rows, at::log_softmax(counted(a.logits), -1));
  } else {
    weight = at::where(rows.is_matched, weight.to(type), a.confidence->detach().to(type));
    const at::Tensor own = at::log_softmax(counted(a.logits) / a.temperature, -1);
    const at::Tensor teacher = at::log_softmax(
        counted(a.teacher->detach().expand_symint(a.logits.sym_sizes())) / a.temperature, -1);
    sides = (teacher.exp() * (teacher - own)).sum(-1) * (a.temperature * a.temperature);
  }
  weight = at::where(rows.is_counted, weight.to(type), 0);
  const at::Tensor losses = weight * at::where(rows.is_counted, sides.sum(-1), 0);

  const at::Tensor is_other = rows.is_counted.logical_and(rows.is_matched.logical_not());
  const at::Tensor is_pair = rows.is_counted.logical_and(rows.is_matched);
  const auto [of_matched, of_others] = scales_of(a, p, sums_of_sets(a.logits, is_pair.to(type)),
                                                 sums_of_sets(a.logits, is_other.to(type)));
  const at::Tensor scale = at::stack({of_matched, of_others}, -1);
  if (p.reduction == Reduction::kNone) return {losses, scale};
  return {sums_of_sets(a.logits, at::where(is_pair, losses, 0)) * of_matched +
              sums_of_sets(a.logits, at::where(is_other, losses, 0)) * of_others,
          scale};
}

}  // namespace

LossOperator& DistributionLoss::loss() {
  static LossOperator loss =
      loss_operator_of<DistributionLoss, binding::DistributionLoss,
                       binding::DistributionLossBackward>("boxloss::distribution_loss", composite);
  return loss;
}

}  // namespace boxloss::torch_binding
