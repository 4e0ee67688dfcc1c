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

/// The executor shows what kernels do wrong. That it runs right ones, the conformance suite shows.
namespace boxloss::gpu_on_host {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

constexpr unsigned kThreads = 256;

using Kernel = std::function<void()>;

void require_error(unsigned blocks, unsigned threads, const Kernel& kernel, const char* words) {
  REQUIRE_THROWS_MATCHES(run_grid("bad", blocks, threads, kernel), DeviceError,
                         MessageMatches(ContainsSubstring(words)));
}

void require_error(const Kernel& kernel, const char* words) {
  require_error(1, kThreads, kernel, words);
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
  require_error(0, kThreads, [] {}, "a grid of 0 blocks");
  require_error(1, 0, [] {}, "blocks of 0 threads");
  require_error(1, 1025, [] {}, "blocks of 1025 threads");
}

TEST_CASE("a shuffle wider than the wavefront is an error") {
  set_hardware(32);
  require_error([] { (void)shuffle_down(1, 1, 64); },
                "a shuffle among 64 lanes on wavefronts of 32");
}

TEST_CASE("the forgotten width of a group of 32 is an error on wavefronts of 64") {
  set_hardware(64);
  require_error(
      [] {
        if (threadIdx.x < 32) (void)shuffle_down(threadIdx.x, 16, 64);
      },
      "which takes no part");
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
  require_error(1, 20, [] { (void)shuffle_down(1, 16, 32); }, "which takes no part");
  require_error([] { (void)shuffle_down(1, threadIdx.x % 2 == 0 ? 1 : 2, 32); },
                "which is in another shuffle");
  require_error(
      [] { (void)(threadIdx.x % 2 == 0 ? shuffle_down(1u, 0, 32) : least_of_lanes(1, 32)); },
      "which is in another shuffle");
}

TEST_CASE("a barrier that a thread has left out is an error, which leaves nothing behind") {
  set_hardware(GENERATE(32u, 64u));
  require_error(
      [] {
        if (threadIdx.x != 77) __syncthreads();
      },
      "255 threads wait at __syncthreads for 1 that exited");
  unsigned runs = 0;
  run_grid("after", 2, kThreads, [&] {
    __syncthreads();
    ++runs;
  });
  REQUIRE(runs == 2 * kThreads);
}

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
  for (unsigned seed = 0; seed < 10; ++seed) {
    set_hardware(wavefront, seed);
    REQUIRE(reverses(true));
    REQUIRE_FALSE(reverses(false));
  }
}

}  // namespace
}  // namespace boxloss::gpu_on_host
