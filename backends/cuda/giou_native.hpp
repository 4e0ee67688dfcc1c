// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

#include <boxloss/giou_loss.hpp>

/// The two passes, compiled apart because each takes its minute.
namespace boxloss::BOXLOSS_GPU {

void giou_forward(const GiouLossProblem&, const GiouLossOutputs&, const Execution&);
void giou_backward(const GiouLossProblem&, const GradView& grad_loss, const void* scale,
                   const GiouLossGradients&, const Execution&);

}  // namespace boxloss::BOXLOSS_GPU
