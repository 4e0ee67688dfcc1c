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
    collate_lists(const CollateArgs a, const TargetLists lists) {
  __shared__ bool has_fault;
  if (threadIdx.x == 0) has_fault = false;
  __syncthreads();
  bool is_own_faulty = false;
  const std::int64_t end = lists.first_row[lists.count];
#pragma unroll 1
  for (std::int64_t row = lists.first_row[0] + threadIdx.x; row < end; row += kThreads) {
    if (collate_row(a, lists, row)) is_own_faulty = true;
  }
  for (std::int64_t i = threadIdx.x; i < offsets_of(a, lists); i += kThreads) {
    write_offset(a, lists, i);
  }
  if (is_own_faulty) has_fault = true;
  __syncthreads();
  if (threadIdx.x == 0) write_factor(a, lists, has_fault);
}

void collate_targets(const CollateProblem& p, const CollateOutputs& outputs,
                     const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  collate_by(p, outputs, [&](const CollateArgs& args, const TargetLists& lists) {
    launch(collate_lists, "collate_targets", 1, kThreads, static_cast<Stream>(execution.stream),
           args, lists);
  });
}

}  // namespace boxloss::BOXLOSS_GPU
