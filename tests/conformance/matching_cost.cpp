// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "matching_cost.hpp"

namespace boxloss::conformance {
namespace {

Results run_cost(const Implementation& implementation, const ParallelFor& parallel_for,
                 const HostCost& host, const Ask& ask) {
  Run run(implementation,
          {{"cost", DType::kF32, cost_entries(host.problem), true, ask.shift(DType::kF32)}},
          parallel_for);
  CostProblem p = host.problem;
  p.device = implementation.device;
  run.move(p.pred.data, host.pred);
  run.move(p.target.data, host.target);
  run.move(p.offsets.data, host.offsets);
  run.move(p.scores.data, host.scores);
  run.move(p.labels.data, host.labels);
  matching_cost(implementation, p, static_cast<float*>(run.output(0)), run.execution());
  return run.results();
}

}  // namespace

bool MatchingCost::is_served(const Implementation& implementation) {
  return implementation.matching_cost.run != nullptr;
}

std::vector<Call> MatchingCost::calls(const Case&, const Host& host, Random&) {
  const auto run = [&host](const auto& implementation, const auto& parallel_for, const Ask& ask) {
    return run_cost(implementation, parallel_for, host, ask);
  };
  const auto is_served = [loss = host.problem.loss,
                          term = host.problem.class_term](const Implementation& implementation) {
    const CostFunctions& served = implementation.matching_cost;
    return served.losses.contains(loss) && served.class_terms.contains(term);
  };
  const auto judge = [&host](const Results& right) {
    return within_bounds(right, {cost_bounds(host)});
  };
  constexpr std::int64_t kLarge = 5000;  // too much work to do twice
  const bool is_large = cost_entries(host.problem) >= kLarge;
  return {call_of(kName, run, is_served, judge, std::vector<Ask>(is_large ? 0 : 1, kOnElements))};
}

}  // namespace boxloss::conformance
