// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
// The first program of docs/cpp.md.
#include <boxloss/boxloss.hpp>
#include <cstddef>
#include <cstdio>
#include <vector>

int main() {
  const std::vector<float> pred = {0, 0, 2, 2, 4, 4, 8, 9};
  const std::vector<unsigned char> target = {1, 1, 3, 3, 4, 4, 8, 8};

  boxloss::LossProblem problem;
  problem.loss = boxloss::Loss::kGiou;
  problem.pred = {pred.data(), boxloss::DType::kF32};
  problem.target = {target.data(), boxloss::DType::kU8};
  problem.pred.slots = problem.target.slots = 2;

  const boxloss::Implementation& cpu = boxloss::implementation("cpu");
  std::vector<std::byte> workspace(boxloss::loss_workspace_bytes(cpu, problem));
  boxloss::Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = workspace.size();

  float loss, scale, upstream = 1;
  std::vector<float> gradient(pred.size());
  boxloss::loss_forward(cpu, problem, {&loss, &scale}, execution);
  boxloss::loss_backward(cpu, problem, {{&upstream}}, &scale, {gradient.data()}, execution);
  std::printf("%s: loss %g, first derivative %g\n", cpu.name, loss, gradient[0]);
}
