// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <Kokkos_Core.hpp>
#include <algorithm>
#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace boxloss {
namespace {

/// Kokkos cannot be initialised where it is built for a GPU that is missing, not even for the host.
bool can_initialize() {
  int devices = 0;
#if defined(KOKKOS_ENABLE_CUDA)
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
#elif defined(KOKKOS_ENABLE_HIP)
  return hipGetDeviceCount(&devices) == hipSuccess && devices > 0;
#else
  return devices == 0;
#endif
}

void skip_without_device() {
  if (!can_initialize()) SKIP("this Kokkos is built for a GPU, and none is found");
}

/// The loss of one pair, by cpu/kokkos.
float call() {
  const float pred[] = {0, 0, 2, 2};
  const float target[] = {1, 1, 3, 3};
  LossProblem problem;
  problem.loss = Loss::kGiou;
  problem.pred.data = pred;
  problem.target.data = target;
  problem.pred.slots = problem.target.slots = 1;
  const Implementation& kokkos = implementation("cpu/kokkos");
  std::vector<std::byte> workspace(loss_workspace_bytes(kokkos, problem));
  Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = workspace.size();
  float loss = std::numeric_limits<float>::quiet_NaN();
  float scale = loss;
  loss_forward(kokkos, problem, {&loss, &scale}, execution);
  return loss;
}

/// I = 1, U = 7, C = 9.
bool is_right(float loss) { return std::fabs(loss - 68.0 / 63) < 32 * 0x1p-24; }

TEST_CASE("nobody has initialised Kokkos") {
  skip_without_device();
  REQUIRE_FALSE(Kokkos::is_initialized());
  REQUIRE(is_right(call()));
  REQUIRE(Kokkos::is_initialized());
  REQUIRE(is_right(call()));
}

TEST_CASE("several threads make the first call") {
  skip_without_device();
  std::vector<float> losses(4);
  std::vector<std::thread> threads;
  for (float& loss : losses) {
    threads.emplace_back([&loss] {
      for (int i = 0; i < 50; ++i) loss = call();
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(std::all_of(losses.begin(), losses.end(), is_right));
}

TEST_CASE("the program has initialised Kokkos, and finalises it") {
  skip_without_device();
  Kokkos::initialize();
  REQUIRE(is_right(call()));
  REQUIRE(is_right(call()));
  Kokkos::finalize();
  REQUIRE_THROWS_MATCHES(
      call(), DeviceError,
      Catch::Matchers::Message(
          "kokkos: the program has finalised Kokkos, after which it cannot be used"));
}

TEST_CASE("the program may initialise Kokkos after it has looked for implementations") {
  skip_without_device();
  REQUIRE(implementation("cpu/kokkos").name == std::string("cpu/kokkos"));
  REQUIRE_FALSE(Kokkos::is_initialized());
  Kokkos::initialize();
  REQUIRE(is_right(call()));
  Kokkos::finalize();
}

TEST_CASE("the program may finalise what a call initialised") {
  skip_without_device();
  REQUIRE(is_right(call()));
  Kokkos::finalize();  // and nothing finalises it again at exit, which would abort
  REQUIRE_THROWS_AS(call(), DeviceError);
}

TEST_CASE("what a call initialised is finalised at exit") {
  skip_without_device();
  REQUIRE(is_right(call()));
  Kokkos::push_finalize_hook([] { std::puts("the finalize hooks have run"); });
}

TEST_CASE("Kokkos refuses to be initialised after a call", "[.]") {
  skip_without_device();
  REQUIRE(is_right(call()));
  Kokkos::initialize();
}

TEST_CASE("without its GPU Kokkos cannot serve even the host") {
  if (can_initialize()) SKIP("nothing is missing here");
  REQUIRE_THROWS_AS(call(), NoDevice);
}

}  // namespace
}  // namespace boxloss
