// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "task_aligned_match.hpp"

namespace boxloss::conformance {
namespace {

Results run_match(const Implementation& implementation, const ParallelFor& parallel_for,
                  const HostTaskAligned& host, const Ask& ask) {
  TaskAlignedProblem p = host.problem;
  p.device = implementation.device;
  const std::int64_t anchors = p.images * p.anchors;
  Run run(implementation,
          {{"target_index", p.index, anchors, true, ask.shift(p.index)},
           {"score", DType::kF32, anchors, true, ask.shift(DType::kF32)},
           {"overlap", DType::kF32, anchors, true, ask.shift(DType::kF32)}},
          parallel_for);
  run.move(p.scores.data, host.scores);
  run.move(p.pred.data, host.pred);
  run.move(p.points.data, host.points);
  run.move(p.target.data, host.target);
  run.move(p.offsets.data, host.offsets);
  run.move(p.labels.data, host.labels);
  task_aligned_match(
      implementation, p,
      {run.output(0), static_cast<float*>(run.output(1)), static_cast<float*>(run.output(2))},
      run.execution(task_aligned_match_workspace_bytes(implementation, p)));
  return run.results();
}

}  // namespace

bool TaskAlignedMatch::is_served(const Implementation& implementation) {
  return implementation.task_aligned_match.run != nullptr;
}

std::vector<Call> TaskAlignedMatch::calls(const Case&, const Host& host, Random&) {
  const auto run = [&host](const auto& implementation, const auto& parallel_for, const Ask& ask) {
    return run_match(implementation, parallel_for, host, ask);
  };
  const auto judge = [&host](const Results& right) { return match_judge(host, right); };
  constexpr std::int64_t kLarge = 50000;  // too much work to do again
  const TaskAlignedProblem& p = host.problem;
  const bool is_large = p.anchors * p.target.images * p.target.slots >= kLarge;
  return {call_of(kName, run, is_served, judge, std::vector<Ask>(is_large ? 0 : 1, kOnElements))};
}

}  // namespace boxloss::conformance
