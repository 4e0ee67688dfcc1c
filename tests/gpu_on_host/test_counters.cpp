// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "counters.hpp"

namespace boxloss::gpu_on_host {
namespace {

TEST_CASE("a stream keeps its counter, a captured launch has one for good") {
  constexpr int kDevice0 = 0;
  const StreamState first{1, false}, second{2, false}, capture{1, true};
  Counter* const counter = take_counter(kDevice0, &first);
  REQUIRE(counter != nullptr);
  REQUIRE(take_counter(kDevice0, &first) == counter);
  REQUIRE(take_counter(kDevice0, &second) != counter);
  Counter* const captured = take_counter(kDevice0, &capture);
  REQUIRE(captured != counter);
  REQUIRE(take_counter(kDevice0, &capture) != captured);
}

/// The loss of one pair, of which pred covers one half: 1/2.
float loss_on(int device) {
  const std::vector<float> pred = {0, 0, 2, 2}, target = {0, 0, 4, 2};
  LossProblem problem;
  problem.loss = Loss::kGiou;
  problem.pred.data = pred.data();
  problem.target.data = target.data();
  problem.pred.slots = problem.target.slots = 1;
  problem.eps = 0;
  const Implementation implementation = native();
  std::vector<double> workspace(implementation.workspace_bytes(problem) / sizeof(double), -1.0);
  Execution execution;
  execution.device_index = device;
  execution.workspace = workspace.data();
  float loss = 0, scale = 0;
  implementation.forward(problem, {&loss, &scale}, execution);
  return loss;
}

TEST_CASE("without a counter to take, the workspace has one") {
  constexpr int kDevice1 = 1;
  const StreamState capture{1, true};
  while (take_counter(kDevice1, &capture) != nullptr) {
  }
  REQUIRE(take_counter(kDevice1, nullptr) == nullptr);
  REQUIRE(loss_on(kDevice1) == 0.5f);
}

}  // namespace
}  // namespace boxloss::gpu_on_host
