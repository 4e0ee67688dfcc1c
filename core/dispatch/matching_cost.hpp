// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/matching_cost.hpp>

#include "../kernels/matching_cost.hpp"

namespace boxloss {

template <class C, class F>
CostArgs<F, C> cost_args(const F& formula, const CostProblem& p, float* cost) {
  const std::int64_t columns = p.target.slots;
  return {
      formula,
      make_eps<C>(p.eps, p.eps_mode),
      {static_cast<C>(p.iou_weight), static_cast<C>(p.l1_weight), static_cast<C>(p.class_weight)},
      p.iou_weight != 0,
      p.l1_weight != 0,
      {static_cast<C>(p.focal_alpha), static_cast<C>(p.focal_gamma), p.focal_gamma == 2},
      p.class_weight != 0 ? p.class_term : ClassTerm::kNone,
      boxes<Any>(p.pred),
      boxes<Any>(p.target),
      {p.scores.data, p.scores.dtype},
      p.scores.block_stride,
      p.scores.query_stride,
      p.classes,
      indices(p.labels),
      {cost_images(p), columns, columns, indices(p.offsets)},
      p.pred.images,
      p.pred.slots,
      columns,
      cost,
      p.nonfinite.has_value(),
      static_cast<float>(p.nonfinite.value_or(0))};
}

/// The plain case: both box terms are requested, and NaN is not replaced. Loops without these
/// conditions take a sixth fewer instructions.
template <class F, class C>
bool is_plain(const CostArgs<F, C>& a) {
  return a.wants_loss && a.wants_l1 && !a.replaces_nonfinite;
}

/// Calls launch(C()) for the compute type C; or, if there is nothing to compute, zeroes the columns
/// of no image by zero(pointer, bytes).
template <class Zero, class Launch>
void dispatch(const CostProblem& p, float* cost, const Zero& zero, const Launch& launch) {
  const std::int64_t entries = p.layers * p.pred.slots * p.target.slots;
  if (entries == 0) return;
  if (p.pred.images == 0) return zero(cost, static_cast<std::size_t>(entries) * sizeof(float));
  if (compute_dtype(p) == DType::kF64) return launch(double());
  launch(float());
}

}  // namespace boxloss
