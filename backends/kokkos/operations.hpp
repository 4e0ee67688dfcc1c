// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/matching_cost.hpp>
#include <boxloss/rotated_box_loss.hpp>

/// Both passes of a LossProblem or a RotatedLossProblem, and the matcher's cost, on the host space
/// and on the device space, in separate translation units so that two processors share the work.
namespace boxloss::kokkos {

template <class Problem>
void forward_on_host(const Problem&, const LossOutputs&, const Execution&);
template <class Problem>
void backward_on_host(const Problem&, const GradOutputs& grads, const void* scale,
                      const LossGradients&, const Execution&);
template <class Problem>
void matching_cost_on_host(const Problem&, float* cost, const Execution&);

template <class Problem>
void forward_on_device(const Problem&, const LossOutputs&, const Execution&);
template <class Problem>
void backward_on_device(const Problem&, const GradOutputs& grads, const void* scale,
                        const LossGradients&, const Execution&);
template <class Problem>
void matching_cost_on_device(const Problem&, float* cost, const Execution&);

}  // namespace boxloss::kokkos
