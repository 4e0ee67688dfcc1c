// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss/pair_launch.hpp"
#include "matching_cost.hpp"

namespace boxloss::kokkos {

std::size_t Workspaces::workspace_bytes(const LossProblem&) { return kSumsBytes<LossesPartial>; }
std::size_t Workspaces::workspace_bytes(const RotatedLossProblem&) {
  return kSumsBytes<LossesPartial>;
}

template void Operations<HostSpace>::forward(const LossProblem&, const LossOutputs&,
                                             const Execution&);
template void Operations<HostSpace>::backward(const LossProblem&, const GradOutputs&, const void*,
                                              const LossGradients&, const Execution&);
template void Operations<HostSpace>::forward(const RotatedLossProblem&, const LossOutputs&,
                                             const Execution&);
template void Operations<HostSpace>::backward(const RotatedLossProblem&, const GradOutputs&,
                                              const void*, const LossGradients&, const Execution&);
template void Operations<HostSpace>::matching_cost(const CostProblem&, float*, const Execution&);
template void Operations<HostSpace>::matching_cost(const RotatedCostProblem&, float*,
                                                   const Execution&);

}  // namespace boxloss::kokkos
