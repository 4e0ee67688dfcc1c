// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

#include <boxloss/box_loss.hpp>
#include <boxloss/matching_cost.hpp>

/// The two passes and the matcher's cost, in separate translation units so that processors share
/// the work.
namespace boxloss::BOXLOSS_GPU {

void forward(const LossProblem&, const LossOutputs&, const Execution&);
void backward(const LossProblem&, const GradOutputs&, const void* scale, const LossGradients&,
              const Execution&);
void matching_cost(const CostProblem&, float* cost, const Execution&);

}  // namespace boxloss::BOXLOSS_GPU
