// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cost_run.hpp"
#include "report.hpp"

namespace boxloss::conformance {

/// The matching cost, into memory of each alignment, against the oracle.
Report check_cost(const Implementation& implementation, const HostCost& host,
                  const std::vector<Alignment>& alignments = {Alignment::kWide,
                                                              Alignment::kElement});

}  // namespace boxloss::conformance
