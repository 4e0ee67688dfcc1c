// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <vector>

#include "box_loss/workspace.hpp"

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

/// What forward may write, -1 before, and a place behind that it may not.
std::vector<double> make_workspace() {
  return std::vector<double>(kWorkspaceBytes / sizeof(double) + 1, -1.0);
}

Execution execution_on(int device, std::vector<double>& workspace) {
  Execution execution;
  execution.device_index = device;
  execution.workspace = workspace.data();
  return execution;
}

const std::vector<float> kPred = {0, 0, 2, 2};
// Pred covers one half, a quarter and all of them.
const std::vector<float> kTargets = {0, 0, 4, 2, 0, 0, 8, 2, 0, 0, 2, 2};
const std::vector<float> kLosses = {0.5f, 0.75f, 0};

LossProblem make_problem(std::int64_t targets) {
  LossProblem problem;
  problem.loss = Loss::kGiou;
  problem.pred.data = kPred.data();
  problem.pred.slots = 1;
  problem.target.data = kTargets.data();
  problem.target.slots = targets;
  problem.eps = 0;
  return problem;
}

TEST_CASE("without a counter to take, the workspace has one") {
  constexpr int kDevice1 = 1;
  const StreamState capture{1, true};
  int taken = 0;
  while (take_counter(kDevice1, &capture) != nullptr) ++taken;
  REQUIRE(taken == 1 << 16);  // all of counters.cu
  REQUIRE(take_counter(kDevice1, nullptr) == nullptr);

  std::vector<double> workspace = make_workspace();
  float loss = 0, scale = 0;
  implementations().front().box_loss.forward(make_problem(1), {&loss, &scale},
                                             execution_on(kDevice1, workspace));
  REQUIRE(loss == kLosses[0]);
  // Behind the partial sums, of which one was left, it is back at 0.
  REQUIRE(workspace[0] == kLosses[0]);
  REQUIRE(workspace[1] == -1);
  REQUIRE(workspace[kPartials - 1] == -1);
  REQUIRE(workspace[kPartials] == 0);
  REQUIRE(workspace[kPartials + 1] == -1);
}

struct Sets {
  std::int64_t sets, pairs;
};

TEST_CASE("sets share a GPU of many blocks, and no more than the workspace has places for") {
  // Two sets of more blocks than a group has lanes, more sets of two blocks than a block has
  // groups, and so many that each has one block, though its pairs ask for as many as there are.
  const auto [sets, pairs] = GENERATE(Sets{2, 20000}, Sets{18, 700}, Sets{350, 6000});
  const auto count = static_cast<std::size_t>(sets * pairs);
  std::vector<std::int32_t> pred_rows(count), target_rows(count);
  for (std::size_t k = 0; k < count; ++k) {
    target_rows[k] = static_cast<std::int32_t>(k / static_cast<std::size_t>(pairs) % 3);
  }
  LossProblem problem = make_problem(static_cast<std::int64_t>(kLosses.size()));
  problem.pairing.kind = Pairing::Kind::kIndexed;
  problem.pairing.sets = sets;
  problem.pairing.pairs = pairs;
  problem.pred.rows = {pred_rows.data(), DType::kI32};
  problem.target.rows = {target_rows.data(), DType::kI32};

  std::vector<double> workspace = make_workspace();
  std::vector<float> losses(static_cast<std::size_t>(sets)), scales = losses;
  implementations().front().box_loss.forward(problem, {losses.data(), scales.data()},
                                             execution_on(kLargeDevice, workspace));
  for (std::size_t set = 0; set < losses.size(); ++set) {
    REQUIRE(losses[set] == kLosses[set % kLosses.size()]);
    REQUIRE(scales[set] == static_cast<float>(1 / static_cast<double>(pairs)));  // none is left out
  }
  REQUIRE(workspace.back() == -1);
}

}  // namespace
}  // namespace boxloss::gpu_on_host
