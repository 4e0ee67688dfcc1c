// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <random>

#include "gpu_runtime.hpp"
#include "sums.hpp"

namespace boxloss::gpu_on_host {
namespace {

constexpr unsigned kBlockThreads = 256;
constexpr unsigned kSeeds = 10;

/// Small integers, so that every order of addition gives the same sum; no two blocks' are alike.
std::vector<Partial> make_values(unsigned blocks, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Partial> values(blocks * kBlockThreads);
  for (Partial& value : values) value = {static_cast<double>(random() % 100000), random() % 3};
  return values;
}

Partial sum(const std::vector<Partial>& values) {
  Partial total{0, 0};
  for (const Partial& value : values) total += value;
  return total;
}

TEST_CASE("a block's sum is that of its threads") {
  const unsigned wavefront = GENERATE(32u, 64u);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    set_hardware(wavefront, seed);
    const std::vector<Partial> values = make_values(1, seed);
    const Partial total = sum_of_block(values);
    REQUIRE(total.sum == sum(values).sum);
    REQUIRE(total.count == sum(values).count);
  }
}

TEST_CASE("a grid's mean is that of all threads, and its counter is zero again") {
  const unsigned wavefront = GENERATE(32u, 64u);
  const unsigned blocks = GENERATE(1u, 2u, 7u, 40u);
  Counter counter = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    set_hardware(wavefront, seed);
    const std::vector<Partial> values = make_values(blocks, seed);
    const Mean mean = mean_of_grid(values, counter);
    const Partial total = sum(values);
    REQUIRE(mean.value == total.sum / static_cast<double>(total.count));
    REQUIRE(mean.scale == 1 / static_cast<double>(total.count));
    REQUIRE(counter == 0);
  }
}

}  // namespace
}  // namespace boxloss::gpu_on_host
