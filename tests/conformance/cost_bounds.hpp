// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cost_problem.hpp"

namespace boxloss::conformance {

/// How far each entry of an implementation's result may be from the oracle's: 0 for columns of no
/// image, infinity where the inputs determine nothing.
std::vector<double> cost_bounds(const HostCost& host);

}  // namespace boxloss::conformance
