// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>

#include "../../pairings/indexed.hpp"

/// What is zeroed before a loop runs, or where none does, by `zero(pointer, bytes)`, which is the
/// backend's memset.
namespace boxloss {

inline bool has_slots(const PairProblem& problem) {
  return loss_rows(problem) > 0 &&
         (is_indexed(problem) || problem.pred.images * problem.pred.slots > 0);
}

/// Elements of the gradients of pred and target.
template <class Problem>
std::int64_t pred_elements(const Problem& problem) {
  return Problem::kNumbers * problem.pred.images * problem.pred.slots;
}

template <class Problem>
std::int64_t target_elements(const Problem& problem) {
  return Problem::kNumbers * problem.target.images * problem.target.slots;
}

/// Every output of a problem without slots.
template <class Zero>
void zero_outputs(const PairProblem& problem, const LossOutputs& outputs, const Zero& zero) {
  const std::size_t size = size_of(compute_dtype(problem));
  const std::int64_t rows = loss_rows(problem), sets = loss_sets(problem);
  const std::int64_t values = problem.reduction == Reduction::kNone ? rows : sets;
  zero(outputs.loss, size * values);
  zero(outputs.scale, size * sets);
  zero(outputs.l1, size * values);
  zero(outputs.iou, size * rows);
}

template <class Problem, class Zero>
void zero_outputs(const Problem& problem, const LossGradients& gradients, const Zero& zero) {
  zero(gradients.pred, pred_elements(problem) * size_of(problem.pred.dtype));
  zero(gradients.target, target_elements(problem) * size_of(problem.target.dtype));
  zero(gradients.weight, loss_rows(problem) * size_of(problem.weight.dtype));
}

/// The gradients of indexed lists, to which backward adds.
template <class Problem, class Zero>
void zero_shared_rows(const Problem& p, const LossGradients& gradients, const Zero& zero) {
  if (p.pred.rows.data != nullptr) {
    zero(gradients.pred, pred_elements(p) * size_of(p.pred.dtype));
  }
  if (p.target.rows.data != nullptr) {
    zero(gradients.target, target_elements(p) * size_of(p.target.dtype));
  }
}

}  // namespace boxloss
