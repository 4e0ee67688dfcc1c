// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/matching_cost.hpp>
#include <boxloss/rotated_box_loss.hpp>

/// The operations, each for the host space and for the device space: those of a LossProblem or a
/// RotatedLossProblem, and the matcher's cost, in separate translation units so that two processors
/// share the work.
namespace boxloss::kokkos {

template <class Space, class Problem>
void forward(const Problem&, const LossOutputs&, const Execution&);
template <class Space, class Problem>
void backward(const Problem&, const GradOutputs& grads, const void* scale, const LossGradients&,
              const Execution&);
template <class Space, class Problem>
void matching_cost(const Problem&, float* cost, const Execution&);

}  // namespace boxloss::kokkos
