// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>

#include "report.hpp"
#include "run.hpp"

namespace boxloss::conformance {

/// Forward, without and with all the extras; then backward with every combination of gradients and
/// every layout of the incoming one, from the loss, from l1 and from both; against the oracle.
Report check(const Implementation& implementation, const HostProblem& host, Values upstream_values,
             Random& random);

/// Forward with each of the extras alone.
Report check_extras(const Implementation& implementation, const HostProblem& host);

}  // namespace boxloss::conformance
