// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

#include <boxloss/box_loss.hpp>

/// The two passes, compiled apart so that two processors share the work.
namespace boxloss::BOXLOSS_GPU {

void forward(const LossProblem&, const LossOutputs&, const Execution&);
void backward(const LossProblem&, const GradOutputs&, const void* scale, const LossGradients&,
              const Execution&);

}  // namespace boxloss::BOXLOSS_GPU
