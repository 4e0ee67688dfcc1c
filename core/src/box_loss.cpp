// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "src/pair_loss.hpp"

namespace boxloss {

DType compute_dtype(const PairProblem& problem) {
  const bool is_f64 = problem.pred.dtype == DType::kF64 || problem.target.dtype == DType::kF64;
  return is_f64 ? DType::kF64 : DType::kF32;
}

std::int64_t loss_rows(const PairProblem& problem) {
  switch (problem.pairing.kind) {
    case Pairing::Kind::kOffsets:
      check_size("target.slots", problem.target.slots, "boxes of all images");
      return problem.target.slots;
    case Pairing::Kind::kIndexed:
      check_size("pairing.pairs", problem.pairing.pairs, "pairs of each set");
      return problem.pairing.sets * problem.pairing.pairs;
    default:
      check_size("pred.slots", problem.pred.slots, "boxes of each image");
      return problem.pred.images * problem.pred.slots;
  }
}

std::int64_t loss_sets(const PairProblem& problem) {
  return is_indexed(problem) ? problem.pairing.sets : 1;
}

void check_options(const LossProblem& p, Set<Extra> extras) { check_pair_options(p, extras); }

std::size_t loss_workspace_bytes(const Implementation& implementation, const LossProblem& problem) {
  return workspace_bytes_for(implementation, problem);
}

void loss_forward(const Implementation& implementation, const LossProblem& problem,
                  const LossOutputs& outputs, const Execution& execution) {
  run_forward(implementation, problem, outputs, execution);
}

void loss_backward(const Implementation& implementation, const LossProblem& problem,
                   const GradOutputs& grads, const void* scale, const LossGradients& gradients,
                   const Execution& execution) {
  run_backward(implementation, problem, grads, scale, gradients, execution);
}

}  // namespace boxloss
