// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "matching_cost.hpp"

namespace boxloss::conformance {
namespace {

Results run_cost(const Implementation& implementation, const ParallelFor& parallel_for,
                 const HostCost& host, Alignment alignment) {
  const std::size_t shift = alignment == Alignment::kWide ? 0 : sizeof(float);
  Run run(implementation, {{"cost", DType::kF32, cost_entries(host.problem), true, shift}},
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
  const auto way = [&host](Alignment alignment) {
    return [&host, alignment](const auto& implementation, const auto& parallel_for) {
      return run_cost(implementation, parallel_for, host, alignment);
    };
  };
  const auto is_served = [loss = host.problem.loss,
                          term = host.problem.class_term](const Implementation& implementation) {
    const CostFunctions& served = implementation.matching_cost;
    return served.losses.contains(loss) && served.class_terms.contains(term);
  };
  Call call{"cost", {{way(Alignment::kWide), is_served, true}}, [&host] {
              const Results right =
                  run_cost(oracle(), boxloss::parallel_for, host, Alignment::kWide);
              return within_bounds(right, {cost_bounds(host)});
            }};
  constexpr std::int64_t kLarge = 5000;  // too much work to do twice
  if (cost_entries(host.problem) < kLarge)
    call.ways.push_back({way(Alignment::kElement), is_served});
  return {call};
}

}  // namespace boxloss::conformance
