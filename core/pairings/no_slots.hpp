// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>

/// With no slots no loop and no kernel runs: every output is zeroed instead. `zero(pointer, bytes)`
/// is the backend's memset.
namespace boxloss {

inline bool has_slots(const LossProblem& problem) {
  return problem.pred.images * problem.pred.slots > 0 && loss_rows(problem) > 0;
}

template <class Zero>
void zero_outputs(const LossProblem& problem, const LossOutputs& outputs, const Zero& zero) {
  const std::size_t size = size_of(compute_dtype(problem));
  const bool unreduced = problem.reduction == Reduction::kNone;
  zero(outputs.loss, size * (unreduced ? loss_rows(problem) : 1));
  zero(outputs.scale, size);
}

template <class Zero>
void zero_outputs(const LossProblem& problem, const LossGradients& gradients, const Zero& zero) {
  const std::size_t rows = loss_rows(problem);
  const std::size_t slots = problem.pred.images * problem.pred.slots;
  zero(gradients.pred, 4 * slots * size_of(problem.pred.dtype));
  zero(gradients.target, 4 * rows * size_of(problem.target.dtype));
  zero(gradients.weight, rows * size_of(problem.weight.dtype));
}

}  // namespace boxloss
