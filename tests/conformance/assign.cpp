// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "assign.hpp"

namespace boxloss::conformance {
namespace {

std::int64_t pair_count(const AssignProblem& p) { return p.layers * p.groups * p.columns; }
std::int64_t query_count(const AssignProblem& p) { return p.layers * p.images * p.queries; }

Results run_assign(const Implementation& implementation, const ParallelFor& parallel_for,
                   const HostAssign& host, const Ask& ask) {
  AssignProblem p = host.problem;
  p.device = implementation.device;
  Run run(implementation,
          {{"pred_index", p.index, pair_count(p), ask.wants(0), ask.shift(p.index)},
           {"target_index", p.index, pair_count(p), ask.wants(1), ask.shift(p.index)},
           {"target_of_query", p.index, query_count(p), ask.wants(2), ask.shift(p.index)}},
          parallel_for);
  run.move(p.cost.data, host.cost);
  run.move(p.offsets.data, host.offsets);
  assign(implementation, p, {run.output(0), run.output(1), run.output(2)},
         run.execution(assign_workspace_bytes(implementation, p)));
  return run.results();
}

}  // namespace

bool Assign::is_served(const Implementation& implementation) {
  return implementation.assign.run != nullptr;
}

std::vector<Call> Assign::calls(const Case&, const Host& host, Random&) {
  const auto run = [&host](const auto& implementation, const auto& parallel_for, const Ask& ask) {
    return run_assign(implementation, parallel_for, host, ask);
  };
  std::vector<Ask> each_alone = {
      {0, Alignment::kElement}, {1, Alignment::kElement}, {2, Alignment::kElement}};
  constexpr std::int64_t kLarge = 5000;  // too much work to do again
  if (host.problem.queries * pair_count(host.problem) >= kLarge) each_alone = {};
  return {call_of(kName, run, is_served, equals, each_alone)};
}

}  // namespace boxloss::conformance
