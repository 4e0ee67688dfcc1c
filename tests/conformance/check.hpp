// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>

#include "report.hpp"
#include "run.hpp"

namespace boxloss::conformance {

/// Forward, then backward with every combination of gradients and every layout of the incoming one,
/// against the oracle.
Report check(const Implementation& implementation, const HostProblem& host, Values upstream_values,
             Random& random);

}  // namespace boxloss::conformance
