// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "check_cost.hpp"

#include "cost_bounds.hpp"

namespace boxloss::conformance {

Report check_cost(const Implementation& implementation, const HostCost& host,
                  const std::vector<Alignment>& alignments) {
  Report report;
  const std::vector<double> bounds = cost_bounds(host);
  const CostResult expected = run_cost(boxloss::implementation("cpu/reference"), host);
  for (const Alignment alignment : alignments) {
    const CostResult got = run_cost(implementation, host, boxloss::parallel_for, alignment);
    report.expect(got.sentinels_intact, "wrote outside of cost");
    report.compare("cost", got.cost, expected.cost, bounds);
  }
  return report;
}

}  // namespace boxloss::conformance
