// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "sums.hpp"

#include "reduce.hpp"

namespace boxloss::gpu_on_host {
namespace {

__global__ void sum_block(const Partial* values, Partial* sum) {
  __shared__ Partial lane_sums[kThreads / kLanes];
  const Partial total = block_sum(values[threadIdx.x], lane_sums);
  if (threadIdx.x == 0) *sum = total;
}

__global__ void mean_grid(const Partial* values, const Reducer<double> reducer) {
  reduce_grid(reducer, values[blockIdx.x * kThreads + threadIdx.x]);
}

}  // namespace

Partial sum_of_block(const std::vector<Partial>& values) {
  Partial sum{};
  launch(sum_block, "sum_block", 1, kThreads, nullptr, values.data(), &sum);
  return sum;
}

Mean mean_of_grid(const std::vector<Partial>& values, Counter& counter) {
  const auto blocks = static_cast<unsigned>(values.size() / kThreads);
  std::vector<double> partials(blocks);
  Mean mean{};
  const ReducedLoss<double> outputs{&mean.value, &mean.scale, {nullptr, DType::kF64}, true};
  const Reducer<double> reducer{partials.data(), &counter, outputs};
  launch(mean_grid, "mean_grid", blocks, kThreads, nullptr, values.data(), reducer);
  return mean;
}

}  // namespace boxloss::gpu_on_host
