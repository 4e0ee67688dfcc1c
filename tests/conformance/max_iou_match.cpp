// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "max_iou_match.hpp"

namespace boxloss::conformance {
namespace {

constexpr std::size_t kOutputs = 2;
constexpr std::size_t kAll = kOutputs;  ///< as the one that is wanted

Results run_match(const Implementation& implementation, const ParallelFor& parallel_for,
                  const HostMatch& host, std::size_t wanted, Alignment alignment) {
  MaxIouProblem p = host.problem;
  p.device = implementation.device;
  const DType compute = compute_dtype(p);
  const std::int64_t count = p.anchors.images * p.anchors.slots;
  const auto is_wanted = [wanted](std::size_t i) { return wanted == kAll || wanted == i; };
  const auto shift = [&](DType dtype) {
    return alignment == Alignment::kWide ? 0 : size_of(dtype);
  };
  Run run(implementation,
          {{"target_index", p.index, count, is_wanted(0), shift(p.index)},
           {"iou", compute, count, is_wanted(1), shift(compute)}},
          parallel_for);
  run.move(p.anchors.data, host.anchors);
  run.move(p.target.data, host.target);
  run.move(p.offsets.data, host.offsets);
  max_iou_match(implementation, p, {run.output(0), run.output(1)},
                run.execution(max_iou_match_workspace_bytes(implementation, p)));
  return run.results();
}

/// Every number is the oracle's: both round as torch does.
Judge equals(const Results& right) {
  Bounds bounds;
  for (const Result& output : right.outputs) {
    bounds.emplace_back(static_cast<std::size_t>(output.values->count()), 0.0);
  }
  return within_bounds(right, bounds);
}

}  // namespace

bool MaxIouMatch::is_served(const Implementation& implementation) {
  return implementation.max_iou_match.run != nullptr;
}

std::vector<Call> MaxIouMatch::calls(const Case&, const Host& host, Random&) {
  const auto way = [&host](std::size_t wanted, Alignment alignment) {
    return [&host, wanted, alignment](const auto& implementation, const auto& parallel_for) {
      return run_match(implementation, parallel_for, host, wanted, alignment);
    };
  };
  Call call{
      kName, {{way(kAll, Alignment::kWide), is_served, true}}, [&host] {
        return equals(run_match(oracle(), boxloss::parallel_for, host, kAll, Alignment::kWide));
      }};
  for (std::size_t i = 0; i < kOutputs; ++i) {  // each alone
    call.ways.push_back({way(i, Alignment::kElement), is_served});
  }
  return {call};
}

}  // namespace boxloss::conformance
