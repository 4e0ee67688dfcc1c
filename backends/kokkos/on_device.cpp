// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss/pair_launch.hpp"
#include "matching_cost.hpp"
#include "operations.hpp"

#if defined(BOXLOSS_KOKKOS_DEVICE)
namespace boxloss::kokkos {

void warm_up_losses(const DeviceSpace& space) { launch_nothing(space); }

template void forward<DeviceSpace>(const LossProblem&, const LossOutputs&, const Execution&);
template void backward<DeviceSpace>(const LossProblem&, const GradOutputs&, const void*,
                                    const LossGradients&, const Execution&);
template void forward<DeviceSpace>(const RotatedLossProblem&, const LossOutputs&, const Execution&);
template void backward<DeviceSpace>(const RotatedLossProblem&, const GradOutputs&, const void*,
                                    const LossGradients&, const Execution&);
template void matching_cost<DeviceSpace>(const CostProblem&, float*, const Execution&);
template void matching_cost<DeviceSpace>(const RotatedCostProblem&, float*, const Execution&);

}  // namespace boxloss::kokkos
#endif
