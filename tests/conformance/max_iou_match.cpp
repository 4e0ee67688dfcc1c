// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "max_iou_match.hpp"

namespace boxloss::conformance {
namespace {

Results run_match(const Implementation& implementation, const ParallelFor& parallel_for,
                  const HostMatch& host, const Ask& ask) {
  MaxIouProblem p = host.problem;
  p.device = implementation.device;
  const DType compute = compute_dtype(p);
  const std::int64_t count = p.anchors.images * p.anchors.slots;
  Run run(implementation,
          {{"target_index", p.index, count, ask.wants(0), ask.shift(p.index)},
           {"iou", compute, count, ask.wants(1), ask.shift(compute)}},
          parallel_for);
  run.move(p.anchors.data, host.anchors);
  run.move(p.target.data, host.target);
  run.move(p.offsets.data, host.offsets);
  max_iou_match(implementation, p, {run.output(0), run.output(1)},
                run.execution(max_iou_match_workspace_bytes(implementation, p)));
  return run.results();
}

}  // namespace

bool MaxIouMatch::is_served(const Implementation& implementation) {
  return implementation.max_iou_match.run != nullptr;
}

std::vector<Call> MaxIouMatch::calls(const Case&, const Host& host, Random&) {
  const auto run = [&host](const auto& implementation, const auto& parallel_for, const Ask& ask) {
    return run_match(implementation, parallel_for, host, ask);
  };
  // Every number is the oracle's: both round as torch does.
  return {
      call_of(kName, run, is_served, equals, {{0, Alignment::kElement}, {1, Alignment::kElement}})};
}

}  // namespace boxloss::conformance
