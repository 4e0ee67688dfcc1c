// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "sums.hpp"

#include "reduce.hpp"

namespace boxloss::gpu_on_host {
namespace {

__global__ void sum_block(const LossesPartial* values, LossesPartial* sum) {
  __shared__ LossesPartial lane_sums[kThreads / kLanes];
  const LossesPartial total = block_sum(values[threadIdx.x], lane_sums);
  if (threadIdx.x == 0) *sum = total;
}

__global__ void mean_grid(const LossesPartial* values, const Reducer<double> reducer) {
  reduce_grid(reducer, values[blockIdx.x * kThreads + threadIdx.x]);
}

__global__ void mean_sets(const LossesPartial* values, std::int64_t sets, unsigned blocks_of_set,
                          const Reducer<double> reducer) {
  const std::int64_t values_of_set = static_cast<std::int64_t>(blocks_of_set) * kThreads;
  const std::int64_t at = (blockIdx.x % blocks_of_set) * kThreads + threadIdx.x;
  const std::int64_t set = blockIdx.x / blocks_of_set;
  reduce_set(reducer, values[set * values_of_set + at], set, sets, blocks_of_set);
}

/// Means of sets, and the memory to find them with.
struct Means {
  std::vector<double> loss, l1, scale;
  std::vector<double> partials = std::vector<double>(3 * kMaxBlocks, -1.0);

  explicit Means(std::size_t sets) : loss(sets), l1(sets), scale(sets) {}

  Reducer<double> reducer(Counter& counter) {
    return {partials.data(),
            &counter,
            {loss.data(), scale.data(), {nullptr, DType::kF64}, true, 0, l1.data()}};
  }
  Mean at(std::size_t set) const { return {loss[set], l1[set], scale[set]}; }
};

}  // namespace

LossesPartial sum_of_block(const std::vector<LossesPartial>& values) {
  LossesPartial sum{};
  launch(sum_block, "sum_block", 1, kThreads, nullptr, values.data(), &sum);
  return sum;
}

Mean mean_of_grid(const std::vector<LossesPartial>& values, Counter& counter) {
  const auto blocks = static_cast<unsigned>(values.size() / kThreads);
  Means means(1);
  launch(mean_grid, "mean_grid", blocks, kThreads, nullptr, values.data(), means.reducer(counter));
  return means.at(0);
}

std::vector<Mean> means_of_sets(const std::vector<LossesPartial>& values, std::size_t sets,
                                unsigned blocks_of_set, Counter& counter) {
  Means means(sets);
  const unsigned blocks = static_cast<unsigned>(sets) * blocks_of_set;
  launch(mean_sets, "mean_sets", blocks, kThreads, nullptr, values.data(),
         static_cast<std::int64_t>(sets), blocks_of_set, means.reducer(counter));
  std::vector<Mean> list;
  for (std::size_t set = 0; set < sets; ++set) list.push_back(means.at(set));
  return list;
}

}  // namespace boxloss::gpu_on_host
