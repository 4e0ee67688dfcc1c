// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "src/pair_loss.hpp"

namespace boxloss {

void check_options(const RotatedLossProblem& p, Set<Extra> extras) {
  check_pair_options(p, extras);
}

std::size_t loss_workspace_bytes(const Implementation& implementation,
                                 const RotatedLossProblem& problem) {
  return workspace_bytes_for(implementation, problem);
}

void loss_forward(const Implementation& implementation, const RotatedLossProblem& problem,
                  const LossOutputs& outputs, const Execution& execution) {
  run_forward(implementation, problem, outputs, execution);
}

void loss_backward(const Implementation& implementation, const RotatedLossProblem& problem,
                   const GradOutputs& grads, const void* scale, const LossGradients& gradients,
                   const Execution& execution) {
  run_backward(implementation, problem, grads, scale, gradients, execution);
}

}  // namespace boxloss
