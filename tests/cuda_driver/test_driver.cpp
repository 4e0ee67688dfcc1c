// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/boxloss.hpp>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

/// The loss of one pair on the host, of which pred covers one half: 1/2. On a GPU nothing is read.
void print_loss(const char* name) {
  const float pred[] = {0, 0, 2, 2}, target[] = {0, 0, 4, 2};
  boxloss::LossProblem problem;
  problem.loss = boxloss::Loss::kIou;
  problem.pred.data = pred;
  problem.target.data = target;
  problem.pred.slots = problem.target.slots = 1;
  const boxloss::Implementation& implementation = boxloss::implementation(name);
  problem.device = implementation.device;
  std::vector<std::byte> workspace(boxloss::loss_workspace_bytes(implementation, problem));
  boxloss::Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = workspace.size();
  float loss = 0, scale = 0;
  boxloss::loss_forward(implementation, problem, {&loss, &scale}, execution);
  std::printf("%s: loss %g\n", name, loss);
}

}  // namespace

int main() {
  try {
    print_loss("cuda/native");
  } catch (const boxloss::NoDevice& error) {
    std::printf("%s\n", error.what());
  }
  print_loss("cpu/native");
}
