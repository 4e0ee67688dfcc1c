// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/matching_cost.hpp>

/// The matcher's cost of both CPU implementations.
namespace boxloss {

namespace native {
void matching_cost(const CostProblem&, float* cost, const Execution&);
}

namespace reference {
void matching_cost(const CostProblem&, float* cost, const Execution&);
}

}  // namespace boxloss
