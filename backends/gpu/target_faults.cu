// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include "dispatch/target_faults.hpp"
#include "operations.hpp"
#include "threads.hpp"

/// Faults in ground truth, by one block: a batch has a few rows for each of its threads, and blocks
/// that had to wait for each other would take longer.
namespace boxloss::BOXLOSS_GPU {

__global__ void __launch_bounds__(kThreads) find_faults(const TargetFaultsArgs a) {
  __shared__ bool has_fault;
  if (threadIdx.x == 0) has_fault = false;
  __syncthreads();
  bool is_own_faulty = false;
#pragma unroll 1
  for (std::int64_t row = threadIdx.x; row < a.rows; row += kThreads) {
    if (is_faulty(a, row)) is_own_faulty = true;
  }
  if (is_own_faulty) has_fault = true;
  __syncthreads();
  if (threadIdx.x == 0) write_factor(a, has_fault);
}

void target_faults(const TargetProblem& p, const TargetOutputs& outputs,
                   const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  launch(find_faults, "target_faults", 1, kThreads, static_cast<Stream>(execution.stream),
         target_faults_args(p, outputs));
}

}  // namespace boxloss::BOXLOSS_GPU
