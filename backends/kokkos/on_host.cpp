// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss/pair_launch.hpp"
#include "matching_cost.hpp"
#include "operations.hpp"

namespace boxloss::kokkos {

template <class Problem>
void forward_on_host(const Problem& problem, const LossOutputs& outputs,
                     const Execution& execution) {
  with_device_errors([&] {
    ensure_initialized();
    const HostSpace space;
    forward(space, problem, outputs, execution);
    space.fence("boxloss::forward");  // a caller on the CPU reads its result at once
  });
}

template <class Problem>
void backward_on_host(const Problem& problem, const GradOutputs& grads, const void* scale,
                      const LossGradients& gradients, const Execution&) {
  with_device_errors([&] {
    ensure_initialized();
    const HostSpace space;
    backward(space, problem, grads, scale, gradients);
    space.fence("boxloss::backward");
  });
}

template <class Problem>
void matching_cost_on_host(const Problem& problem, float* cost, const Execution&) {
  with_device_errors([&] {
    ensure_initialized();
    const HostSpace space;
    matching_cost(space, problem, cost);
    space.fence("boxloss::matching_cost");
  });
}

template void forward_on_host(const LossProblem&, const LossOutputs&, const Execution&);
template void backward_on_host(const LossProblem&, const GradOutputs&, const void*,
                               const LossGradients&, const Execution&);
template void forward_on_host(const RotatedLossProblem&, const LossOutputs&, const Execution&);
template void backward_on_host(const RotatedLossProblem&, const GradOutputs&, const void*,
                               const LossGradients&, const Execution&);
template void matching_cost_on_host(const CostProblem&, float*, const Execution&);
template void matching_cost_on_host(const RotatedCostProblem&, float*, const Execution&);

}  // namespace boxloss::kokkos
