// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss/pair_launch.hpp"
#include "matching_cost.hpp"
#include "operations.hpp"

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
namespace boxloss::kokkos {
namespace {

struct NoWork {
  KOKKOS_FUNCTION void operator()(const Kokkos::TeamPolicy<DeviceSpace>::member_type&) const {}
};

/// Launches a kernel on a new instance. It requests scratch memory that nothing uses, since an
/// instance without any asks for some in every launch.
void warm_up(const DeviceSpace& space) {
  Kokkos::TeamPolicy<DeviceSpace> policy(space, 1, 1);
  policy.set_scratch_size(1, Kokkos::PerTeam(1));
  Kokkos::parallel_for("boxloss::warm_up", policy, NoWork());
}

}  // namespace

template <class Problem>
void forward_on_device(const Problem& problem, const LossOutputs& outputs,
                       const Execution& execution) {
  with_device_errors([&] {
    const DeviceCall call(execution, warm_up);
    forward(call.space, problem, outputs, execution);
    check_launch();
  });
}

template <class Problem>
void backward_on_device(const Problem& problem, const GradOutputs& grads, const void* scale,
                        const LossGradients& gradients, const Execution& execution) {
  with_device_errors([&] {
    const DeviceCall call(execution, warm_up);
    backward(call.space, problem, grads, scale, gradients);
    check_launch();
  });
}

template <class Problem>
void matching_cost_on_device(const Problem& problem, float* cost, const Execution& execution) {
  with_device_errors([&] {
    const DeviceCall call(execution, warm_up);
    matching_cost(call.space, problem, cost);
    check_launch();
  });
}

template void forward_on_device(const LossProblem&, const LossOutputs&, const Execution&);
template void backward_on_device(const LossProblem&, const GradOutputs&, const void*,
                                 const LossGradients&, const Execution&);
template void forward_on_device(const RotatedLossProblem&, const LossOutputs&, const Execution&);
template void backward_on_device(const RotatedLossProblem&, const GradOutputs&, const void*,
                                 const LossGradients&, const Execution&);
template void matching_cost_on_device(const CostProblem&, float*, const Execution&);
template void matching_cost_on_device(const RotatedCostProblem&, float*, const Execution&);

}  // namespace boxloss::kokkos
#endif
