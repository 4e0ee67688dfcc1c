// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cost_run.hpp"

namespace boxloss::conformance {

CostResult run_cost(const Implementation& implementation, const HostCost& host,
                    const ParallelFor& parallel_for, Alignment alignment) {
  const DeviceMemory& memory = *device_memory(implementation.device);
  const Input pred(memory, host.pred), target(memory, host.target), offsets(memory, host.offsets);
  const Input scores(memory, host.scores), labels(memory, host.labels);
  CostProblem problem = host.problem;
  problem.device = implementation.device;
  move_to(problem.pred.data, host.pred, pred);
  move_to(problem.target.data, host.target, target);
  move_to(problem.offsets.data, host.offsets, offsets);
  move_to(problem.scores.data, host.scores, scores);
  move_to(problem.labels.data, host.labels, labels);

  CostResult result{Array(DType::kF32, cost_entries(problem)), false};
  const std::size_t shift = alignment == Alignment::kWide ? 0 : sizeof(float);
  const Output cost(memory, result.cost.size_bytes(), shift);
  Execution execution;
  execution.parallel_for = parallel_for;
  matching_cost(implementation, problem, static_cast<float*>(cost.data()), execution);
  cost.read(result.cost);
  result.sentinels_intact = cost.sentinels_intact();
  return result;
}

}  // namespace boxloss::conformance
