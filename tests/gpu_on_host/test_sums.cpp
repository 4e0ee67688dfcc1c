// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <random>

#include "box_loss/reduce.hpp"

namespace boxloss::gpu_on_host {
namespace {

using Values = std::vector<LossesPartial>;

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

struct Mean {
  double loss, l1, scale;
};

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

/// Of one value for each thread of a block.
LossesPartial sum_of_block(const Values& values) {
  LossesPartial sum{};
  launch(sum_block, "sum_block", 1, kThreads, nullptr, values.data(), &sum);
  return sum;
}

/// Of one value for each thread of a grid of whole blocks.
Mean mean_of_grid(const Values& values, Counter& counter) {
  const auto blocks = static_cast<unsigned>(values.size() / kThreads);
  Means means(1);
  launch(mean_grid, "mean_grid", blocks, kThreads, nullptr, values.data(), means.reducer(counter));
  return means.at(0);
}

/// The same for each of several sets, which have as many values each, `blocks_of_set` whole blocks
/// of them.
std::vector<Mean> means_of_sets(const Values& values, std::size_t sets, unsigned blocks_of_set,
                                Counter& counter) {
  Means means(sets);
  const unsigned blocks = static_cast<unsigned>(sets) * blocks_of_set;
  launch(mean_sets, "mean_sets", blocks, kThreads, nullptr, values.data(),
         static_cast<std::int64_t>(sets), blocks_of_set, means.reducer(counter));
  std::vector<Mean> list;
  for (std::size_t set = 0; set < sets; ++set) list.push_back(means.at(set));
  return list;
}

constexpr unsigned kSeeds = 5;

/// Small integers, so that every order of addition gives the same sum; no two blocks' are alike.
Values make_values(unsigned blocks, unsigned seed) {
  std::mt19937 random(seed);
  Values values(blocks * kThreads);
  for (LossesPartial& value : values) {
    value = {{static_cast<double>(random() % 100000), static_cast<double>(random() % 100000)},
             random() % 3};
  }
  return values;
}

LossesPartial sum(const Values& values) {
  LossesPartial total{};
  for (const LossesPartial& value : values) total += value;
  return total;
}

void require_mean(const Mean& mean, const LossesPartial& total) {
  REQUIRE(mean.loss == total.sums[0] / static_cast<double>(total.count));
  REQUIRE(mean.l1 == total.sums[1] / static_cast<double>(total.count));
  REQUIRE(mean.scale == 1 / static_cast<double>(total.count));
}

TEST_CASE("a block's sum is that of its threads") {
  const unsigned wavefront = GENERATE(32u, 64u);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    set_hardware(wavefront, seed);
    const Values values = make_values(1, seed);
    const LossesPartial total = sum_of_block(values);
    REQUIRE(total.sums[0] == sum(values).sums[0]);
    REQUIRE(total.sums[1] == sum(values).sums[1]);
    REQUIRE(total.count == sum(values).count);
  }
}

TEST_CASE("a grid's mean is that of all threads, and its counter is zero again") {
  const unsigned wavefront = GENERATE(32u, 64u);
  const unsigned blocks = GENERATE(1u, 2u, 7u, 40u);
  Counter counter = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    set_hardware(wavefront, seed);
    const Values values = make_values(blocks, seed);
    require_mean(mean_of_grid(values, counter), sum(values));
    REQUIRE(counter == 0);
  }
}

struct Sets {
  std::size_t sets;
  unsigned blocks_of_set;
};

TEST_CASE("each set's mean is that of its threads, and the counter is zero again") {
  const unsigned wavefront = GENERATE(32u, 64u);
  // A block for each, sets of several blocks, of more than a group of lanes has; more sets than a
  // block has groups.
  const Sets shape =
      GENERATE(Sets{1, 1}, Sets{5, 1}, Sets{1, 2}, Sets{3, 4}, Sets{1, 35}, Sets{9, 2});
  Counter counter = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    set_hardware(wavefront, seed);
    const unsigned blocks = static_cast<unsigned>(shape.sets) * shape.blocks_of_set;
    const Values values = make_values(blocks, seed);
    const std::vector<Mean> means = means_of_sets(values, shape.sets, shape.blocks_of_set, counter);
    const std::size_t values_of_set = values.size() / shape.sets;
    for (std::size_t set = 0; set < shape.sets; ++set) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(set * values_of_set);
      require_mean(means[set],
                   sum(Values(begin, begin + static_cast<std::ptrdiff_t>(values_of_set))));
    }
    REQUIRE(counter == 0);
  }
}

}  // namespace
}  // namespace boxloss::gpu_on_host
