// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "assign.hpp"

namespace boxloss::conformance {
namespace {

constexpr std::size_t kOutputs = 3;
constexpr std::size_t kAll = kOutputs;  ///< as the one that is wanted

std::int64_t pair_count(const AssignProblem& p) { return p.layers * p.groups * p.columns; }
std::int64_t query_count(const AssignProblem& p) { return p.layers * p.images * p.queries; }

Results run_assign(const Implementation& implementation, const ParallelFor& parallel_for,
                   const HostAssign& host, std::size_t wanted, Alignment alignment) {
  AssignProblem p = host.problem;
  p.device = implementation.device;
  const std::size_t shift = alignment == Alignment::kWide ? 0 : size_of(p.index);
  const auto is_wanted = [wanted](std::size_t i) { return wanted == kAll || wanted == i; };
  Run run(implementation,
          {{"pred_index", p.index, pair_count(p), is_wanted(0), shift},
           {"target_index", p.index, pair_count(p), is_wanted(1), shift},
           {"target_of_query", p.index, query_count(p), is_wanted(2), shift}},
          parallel_for);
  run.move(p.cost.data, host.cost);
  run.move(p.offsets.data, host.offsets);
  const auto output = [&](std::size_t i) { return run.output(i); };
  assign(implementation, p, {output(0), output(1), output(2)},
         run.execution(assign_workspace_bytes(implementation, p)));
  return run.results();
}

/// Every index is the oracle's.
Judge equals(const Results& right) {
  Bounds bounds;
  for (const Result& output : right.outputs) {
    bounds.emplace_back(static_cast<std::size_t>(output.values->count()), 0.0);
  }
  return within_bounds(right, bounds);
}

}  // namespace

bool Assign::is_served(const Implementation& implementation) {
  return implementation.assign.run != nullptr;
}

std::vector<Call> Assign::calls(const Case&, const Host& host, Random&) {
  const auto way = [&host](std::size_t wanted, Alignment alignment) {
    return [&host, wanted, alignment](const auto& implementation, const auto& parallel_for) {
      return run_assign(implementation, parallel_for, host, wanted, alignment);
    };
  };
  Call call{
      "assign", {{way(kAll, Alignment::kWide), is_served, true}}, [&host] {
        return equals(run_assign(oracle(), boxloss::parallel_for, host, kAll, Alignment::kWide));
      }};
  constexpr std::int64_t kLarge = 5000;  // too much work to do again
  if (host.problem.queries * pair_count(host.problem) >= kLarge) return {call};
  for (std::size_t i = 0; i < kOutputs; ++i) {  // each alone
    call.ways.push_back({way(i, Alignment::kElement), is_served});
  }
  return {call};
}

}  // namespace boxloss::conformance
