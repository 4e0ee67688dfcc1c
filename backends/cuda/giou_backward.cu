// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "giou_native.hpp"
#include "pair_launch.hpp"

namespace boxloss::BOXLOSS_GPU {

void giou_backward(const GiouLossProblem& problem, const GradView& grad_loss, const void* scale,
                   const GiouLossGradients& gradients, const Execution& execution) {
  backward<Giou>(problem, grad_loss, scale, gradients, execution);
}

}  // namespace boxloss::BOXLOSS_GPU
