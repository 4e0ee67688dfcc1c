// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss/pair_launch.hpp"
#include "matching_cost.hpp"
#include "operations.hpp"

namespace boxloss::kokkos {

template void forward<HostSpace>(const LossProblem&, const LossOutputs&, const Execution&);
template void backward<HostSpace>(const LossProblem&, const GradOutputs&, const void*,
                                  const LossGradients&, const Execution&);
template void forward<HostSpace>(const RotatedLossProblem&, const LossOutputs&, const Execution&);
template void backward<HostSpace>(const RotatedLossProblem&, const GradOutputs&, const void*,
                                  const LossGradients&, const Execution&);
template void matching_cost<HostSpace>(const CostProblem&, float*, const Execution&);
template void matching_cost<HostSpace>(const RotatedCostProblem&, float*, const Execution&);

}  // namespace boxloss::kokkos
