// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/error.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "executor.hpp"

/// The executor does what a GPU does, and says so where a GPU does something undefined.
namespace boxloss::gpu_on_host {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

constexpr unsigned kThreads = 256;
constexpr unsigned kSeeds = 10;

using Kernel = std::function<void()>;

void require_error(const Kernel& kernel, const char* words) {
  REQUIRE_THROWS_MATCHES(run_grid("bad", 1, kThreads, kernel), DeviceError,
                         MessageMatches(ContainsSubstring(words)));
}

TEST_CASE("each thread of each block runs once") {
  set_hardware(GENERATE(32u, 64u));
  const unsigned threads = GENERATE(1u, 31u, 33u, 100u, 256u, 1024u);
  constexpr unsigned kBlocks = 5;
  std::vector<int> runs(kBlocks * threads);
  run_grid("count", kBlocks, threads, [&] {
    if (gridDim.x == kBlocks) ++runs[blockIdx.x * threads + threadIdx.x];
  });
  REQUIRE(std::count(runs.begin(), runs.end(), 1) == kBlocks * threads);
}

std::vector<unsigned> order_of_blocks(unsigned seed) {
  set_hardware(32, seed);
  std::vector<unsigned> order;
  run_grid("order", 50, 1, [&] { order.push_back(blockIdx.x); });
  return order;
}

std::vector<unsigned> order_of_threads(unsigned seed) {
  set_hardware(32, seed);
  std::vector<unsigned> order;
  run_grid("order", 1, kThreads, [&] { order.push_back(threadIdx.x); });
  return order;
}

TEST_CASE("blocks and threads run in orders that the seed gives") {
  for (const auto order_of : {order_of_blocks, order_of_threads}) {
    REQUIRE(order_of(1) == order_of(1));
    REQUIRE(order_of(1) != order_of(2));
    REQUIRE_FALSE(std::is_sorted(order_of(1).begin(), order_of(1).end()));
  }
}

TEST_CASE("a grid of no threads, or of too many, is an error") {
  REQUIRE_THROWS_AS(run_grid("empty", 0, kThreads, [] {}), DeviceError);
  REQUIRE_THROWS_AS(run_grid("empty", 1, 0, [] {}), DeviceError);
  REQUIRE_THROWS_AS(run_grid("large", 1, 1025, [] {}), DeviceError);
}

// --- Shuffles ---

TEST_CASE("a shuffle gives the value further on in the group, else the own one") {
  const unsigned wavefront = GENERATE(32u, 64u);
  const unsigned width = GENERATE(4u, 32u, 64u);
  if (width > wavefront) return;
  set_hardware(wavefront);
  for (const unsigned lanes : {0u, 1u, 16u, 31u, 32u, 100u}) {
    std::vector<unsigned> got(kThreads);
    run_grid("shuffle", 1, kThreads,
             [&] { got[threadIdx.x] = shuffle_down(threadIdx.x, lanes, width); });
    for (unsigned i = 0; i < kThreads; ++i) {
      REQUIRE(got[i] == (i % width + lanes < width ? i + lanes : i));
    }
  }
}

TEST_CASE("each lane gets the least of its group") {
  const unsigned wavefront = GENERATE(32u, 64u);
  const unsigned width = GENERATE(4u, 32u, 64u);
  if (width > wavefront) return;
  set_hardware(wavefront);
  std::vector<unsigned> got(kThreads);
  run_grid("least", 1, kThreads,
           [&] { got[threadIdx.x] = least_of_lanes(1000 + (threadIdx.x ^ 3), width); });
  for (unsigned i = 0; i < kThreads; ++i) REQUIRE(got[i] == 1000 + i - i % width);
}

TEST_CASE("shuffles follow each other without a barrier") {
  set_hardware(GENERATE(32u, 64u), GENERATE(1u, 2u, 3u));
  std::vector<unsigned> sums(kThreads / 32);
  run_grid("sum", 1, kThreads, [&] {
    unsigned sum = threadIdx.x;
    for (unsigned lanes = 16; lanes > 0; lanes /= 2) sum += shuffle_down(sum, lanes, 32);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  });
  for (unsigned i = 0; i < sums.size(); ++i) REQUIRE(sums[i] == 32 * 32 * i + 31 * 32 / 2);
}

TEST_CASE("a sum written for wavefronts of 64 works there and is an error on 32") {
  unsigned sum = 0;
  const Kernel kernel = [&] {
    unsigned value = threadIdx.x;
    for (unsigned lanes = 32; lanes > 0; lanes /= 2) value += shuffle_down(value, lanes, 64);
    if (threadIdx.x == 0) sum = value;
  };
  set_hardware(64);
  run_grid("sum", 1, kThreads, kernel);
  REQUIRE(sum == 63 * 64 / 2);
  set_hardware(32);
  require_error(kernel, "a shuffle among 64 lanes on wavefronts of 32");
}

/// One group of 32 goes on alone, as groups do that find no more work.
Kernel lone_group(unsigned width) {
  return [width] {
    if (threadIdx.x >= 32) return;
    (void)shuffle_down(threadIdx.x, 16, width);
  };
}

TEST_CASE("the forgotten width of a group of 32 is an error on wavefronts of 64") {
  for (const unsigned wavefront : {32u, 64u}) {
    set_hardware(wavefront);
    run_grid("lone group", 1, kThreads, lone_group(32));
  }
  set_hardware(64);
  require_error(lone_group(64), "which takes no part");
}

TEST_CASE("to shuffle from a lane that is elsewhere is an error") {
  set_hardware(GENERATE(32u, 64u), GENERATE(1u, 2u, 3u));
  require_error(
      [] {
        if (threadIdx.x % 2 == 0) (void)shuffle_down(1, 1, 32);
      },
      "which takes no part");
  require_error(
      [] {
        if (threadIdx.x % 2 == 0) (void)shuffle_down(1, 1, 32);
        __syncthreads();
      },
      "which takes no part");
  require_error(
      [] {
        if (threadIdx.x % 2 == 0) (void)least_of_lanes(1, 32);
      },
      "which takes no part");
  require_error([] { (void)shuffle_down(1, threadIdx.x % 2 == 0 ? 1 : 2, 32); },
                "which is in another shuffle");
  require_error(
      [] { (void)(threadIdx.x % 2 == 0 ? shuffle_down(1u, 0, 32) : least_of_lanes(1, 32)); },
      "which is in another shuffle");
  REQUIRE_THROWS_MATCHES(run_grid("short", 1, 20, [] { (void)shuffle_down(1, 16, 32); }),
                         DeviceError, MessageMatches(ContainsSubstring("takes no part")));
}

// --- Barriers ---

/// Writes a place in shared memory and reads another thread's. True: all found what was written.
bool reverses(bool has_barrier) {
  bool ok = true;
  run_grid("reverse", 3, kThreads, [&] {
    __shared__ unsigned shared[kThreads];
    const unsigned mirrored = kThreads - 1 - threadIdx.x;
    shared[threadIdx.x] = blockIdx.x * kThreads + threadIdx.x;
    if (has_barrier) __syncthreads();
    if (shared[mirrored] != blockIdx.x * kThreads + mirrored) ok = false;
    if (has_barrier) __syncthreads();
    shared[threadIdx.x] = 0;
  });
  return ok;
}

TEST_CASE("behind a barrier all see what all wrote before; a missing one shows") {
  const unsigned wavefront = GENERATE(32u, 64u);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    set_hardware(wavefront, seed);
    REQUIRE(reverses(true));
    REQUIRE_FALSE(reverses(false));
  }
}

TEST_CASE("a barrier that a thread has left out is an error") {
  set_hardware(GENERATE(32u, 64u));
  require_error(
      [] {
        if (threadIdx.x != 77) __syncthreads();
      },
      "255 threads wait at __syncthreads for 1 that exited");
}

TEST_CASE("an error leaves nothing behind") {
  set_hardware(32);
  require_error(lone_group(64), "wavefronts of 32");
  unsigned runs = 0;
  run_grid("after", 2, kThreads, [&] {
    __syncthreads();
    ++runs;
  });
  REQUIRE(runs == 2 * kThreads);
}

}  // namespace
}  // namespace boxloss::gpu_on_host
