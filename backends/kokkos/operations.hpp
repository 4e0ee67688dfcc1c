// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/matching_cost.hpp>

/// Both passes and the matcher's cost on the host space and on the device space, in separate
/// translation units so that two processors share the work.
namespace boxloss::kokkos {

void forward_on_host(const LossProblem&, const LossOutputs&, const Execution&);
void backward_on_host(const LossProblem&, const GradOutputs& grads, const void* scale,
                      const LossGradients&, const Execution&);
void matching_cost_on_host(const CostProblem&, float* cost, const Execution&);

void forward_on_device(const LossProblem&, const LossOutputs&, const Execution&);
void backward_on_device(const LossProblem&, const GradOutputs& grads, const void* scale,
                        const LossGradients&, const Execution&);
void matching_cost_on_device(const CostProblem&, float* cost, const Execution&);

}  // namespace boxloss::kokkos
