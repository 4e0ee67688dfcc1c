// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu/native/box_loss/run.hpp"
#include "cpu/operations.hpp"

namespace boxloss {

std::size_t native::Operations::workspace_bytes(const RotatedLossProblem& p) {
  return bytes_of_partials(p);
}

void native::Operations::forward(const RotatedLossProblem& p, const LossOutputs& outputs,
                                 const Execution& execution) {
  run_forward(p, outputs, execution);
}

void native::Operations::backward(const RotatedLossProblem& p, const GradOutputs& grads,
                                  const void* scale, const LossGradients& gradients,
                                  const Execution& execution) {
  run_backward(p, grads, scale, gradients, execution);
}

}  // namespace boxloss
