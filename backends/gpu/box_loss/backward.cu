// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include "box_loss/pair_launch.hpp"
#include "operations.hpp"

namespace boxloss::BOXLOSS_GPU {

void Operations::backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
                          const LossGradients& gradients, const Execution& execution) {
  run(p, gradients, execution, [&](auto dtypes, const auto& pairing) {
    using D = decltype(dtypes);
    launch_backward<typename D::Pred, typename D::Target, typename D::Compute>(
        p, pairing, grads, scale, gradients, execution);
  });
}

}  // namespace boxloss::BOXLOSS_GPU
