// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "task_aligned_match.hpp"

namespace boxloss::conformance {
namespace {

Results run_match(const Implementation& implementation, const ParallelFor& parallel_for,
                  const HostTaskAligned& host, Alignment alignment) {
  TaskAlignedProblem p = host.problem;
  p.device = implementation.device;
  const std::int64_t anchors = p.images * p.anchors;
  const auto shift = [alignment](DType dtype) {
    return alignment == Alignment::kWide ? 0 : size_of(dtype);
  };
  Run run(implementation,
          {{"target_index", p.index, anchors, true, shift(p.index)},
           {"score", DType::kF32, anchors, true, shift(DType::kF32)},
           {"overlap", DType::kF32, anchors, true, shift(DType::kF32)}},
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
  const auto way = [&host](Alignment alignment) {
    return [&host, alignment](const auto& implementation, const auto& parallel_for) {
      return run_match(implementation, parallel_for, host, alignment);
    };
  };
  Call call{"match", {{way(Alignment::kWide), is_served, true}}, [&host] {
              return match_judge(
                  host, run_match(oracle(), boxloss::parallel_for, host, Alignment::kWide));
            }};
  constexpr std::int64_t kLarge = 50000;  // too much work to do again
  const TaskAlignedProblem& p = host.problem;
  if (p.anchors * p.target.images * p.target.slots < kLarge) {
    call.ways.push_back({way(Alignment::kElement), is_served});
  }
  return {call};
}

}  // namespace boxloss::conformance
