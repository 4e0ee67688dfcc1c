// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss/pair_launch.hpp"
#include "matching_cost.hpp"

#if defined(BOXLOSS_KOKKOS_DEVICE)
namespace boxloss::kokkos {

void warm_up_losses(const DeviceSpace& space) { launch_nothing(space); }

template void Operations<DeviceSpace>::forward(const LossProblem&, const LossOutputs&,
                                               const Execution&);
template void Operations<DeviceSpace>::backward(const LossProblem&, const GradOutputs&, const void*,
                                                const LossGradients&, const Execution&);
template void Operations<DeviceSpace>::forward(const RotatedLossProblem&, const LossOutputs&,
                                               const Execution&);
template void Operations<DeviceSpace>::backward(const RotatedLossProblem&, const GradOutputs&,
                                                const void*, const LossGradients&,
                                                const Execution&);
template void Operations<DeviceSpace>::matching_cost(const CostProblem&, float*, const Execution&);
template void Operations<DeviceSpace>::matching_cost(const RotatedCostProblem&, float*,
                                                     const Execution&);

}  // namespace boxloss::kokkos
#endif
