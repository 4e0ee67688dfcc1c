// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cost_problem.hpp"
#include "run.hpp"

/// Runs an implementation's matching cost on copies of a host problem on its device.
namespace boxloss::conformance {

struct CostResult {
  Array cost;
  bool sentinels_intact;
};

CostResult run_cost(const Implementation& implementation, const HostCost& host,
                    const ParallelFor& parallel_for = boxloss::parallel_for,
                    Alignment alignment = Alignment::kWide);

}  // namespace boxloss::conformance
