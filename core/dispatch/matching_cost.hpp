// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/matching_cost.hpp>

#include "../kernels/matching_cost.hpp"

namespace boxloss {

template <class C, class F>
CostArgs<F, C> cost_args(const F& formula, const PairwiseProblem& p, float* cost) {
  const std::int64_t columns = p.target.slots;
  CostArgs<F, C> a = {};
  a.formula = formula;
  a.constants = constants_of<C>(p);
  a.weights.iou = static_cast<C>(p.iou_weight);
  a.weights.l1 = static_cast<C>(p.l1_weight);
  a.weights.class_term = static_cast<C>(p.class_weight);
  a.wants_loss = p.iou_weight != 0;
  a.wants_l1 = p.l1_weight != 0;
  a.focal = {static_cast<C>(p.focal_alpha), static_cast<C>(p.focal_gamma), p.focal_gamma == 2};
  a.class_term = p.class_weight != 0 ? p.class_term : ClassTerm::kNone;
  a.pred = boxes<Any>(p.pred);
  a.target = boxes<Any>(p.target);
  a.scores = {p.scores.data, p.scores.dtype};
  a.score_block_stride = p.scores.block_stride;
  a.score_query_stride = p.scores.query_stride;
  a.classes = p.classes;
  a.labels = indices(p.labels);
  a.owners = {cost_images(p), columns, columns, indices(p.offsets)};
  a.blocks = p.pred.images;
  a.queries = p.pred.slots;
  a.columns = columns;
  a.cost = cost;
  a.replaces_nonfinite = p.nonfinite.has_value();
  a.nonfinite = static_cast<float>(p.nonfinite.value_or(0));
  return a;
}

/// Of any formula, or of one for the problem's loss alone.
template <class C>
CostArgs<AnyFormula, C> cost_args(const CostProblem& p, float* cost) {
  return cost_args<C>(AnyFormula{p.loss}, p, cost);
}

/// Boxes are in radians when they come to the formula.
template <class C>
CostArgs<AnyRotatedFormula, C> cost_args(const RotatedCostProblem& p, float* cost) {
  auto a = cost_args<C>(AnyRotatedFormula{{p.loss}, AngleUnit::kRadians}, p, cost);
  a.angle_unit = p.angle_unit;
  a.l1_weight = a.weights.l1;
  a.angle_weight = static_cast<C>(p.angle_weight);
  a.weights.l1 = 1;
  a.wants_l1 = p.l1_weight != 0 || p.angle_weight != 0;
  return a;
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
void dispatch(const PairwiseProblem& p, float* cost, const Zero& zero, const Launch& launch) {
  const std::int64_t entries = p.layers * p.pred.slots * p.target.slots;
  if (entries == 0) return;
  if (p.pred.images == 0) return zero(cost, static_cast<std::size_t>(entries) * sizeof(float));
  if (compute_dtype(p) == DType::kF64) return launch(double());
  launch(float());
}

}  // namespace boxloss
