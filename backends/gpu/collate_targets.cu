// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include "dispatch/collate_targets.hpp"
#include "operations.hpp"
#include "threads.hpp"

/// Ground truth as one list, by one block: a batch has a few rows for each of its threads, and
/// blocks that had to wait for each other would take longer.
namespace boxloss::BOXLOSS_GPU {

__global__ void __launch_bounds__(kThreads)
    collate_by_block(const CollateArgs a, const TargetLists lists) {
  __shared__ bool has_fault;
  collate_lists(Block(), has_fault, a, lists);
}

void Operations::collate_targets(const CollateProblem& p, const CollateOutputs& outputs,
                                 const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  collate_by(p, outputs, [&](const CollateArgs& args, const TargetLists& lists) {
    launch(collate_by_block, "collate_targets", 1, kThreads, static_cast<Stream>(execution.stream),
           args, lists);
  });
}

}  // namespace boxloss::BOXLOSS_GPU
