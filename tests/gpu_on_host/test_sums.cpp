// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <random>

#include "gpu_runtime.hpp"
#include "sums.hpp"

namespace boxloss::gpu_on_host {
namespace {

using Values = std::vector<LossesPartial>;

constexpr unsigned kBlockThreads = 256;
constexpr unsigned kSeeds = 5;

/// Small integers, so that every order of addition gives the same sum; no two blocks' are alike.
Values make_values(unsigned blocks, unsigned seed) {
  std::mt19937 random(seed);
  Values values(blocks * kBlockThreads);
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
