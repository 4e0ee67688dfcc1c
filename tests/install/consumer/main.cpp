// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/boxloss.hpp>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

// Members that are left out are no warning, which would be an error here.
[[maybe_unused]] const boxloss::LossProblem kLossProblem{boxloss::Device::kCpu};
[[maybe_unused]] const boxloss::CostProblem kCostProblem{boxloss::Device::kCpu};

/// A few float roundings of numbers below 2.
bool near(float got, double expected) { return std::fabs(got - expected) < 32 * 0x1p-24; }

}  // namespace

int main() {
  const float pred[] = {0, 0, 2, 2};
  const float target[] = {1, 1, 3, 3};

  boxloss::LossProblem problem;
  problem.loss = boxloss::Loss::kGiou;
  problem.pred.data = pred;
  problem.pred.slots = 1;
  problem.target.data = target;
  problem.target.slots = 1;

  const boxloss::Implementation& cpu = boxloss::implementation("cpu");
  std::vector<std::byte> workspace(boxloss::loss_workspace_bytes(cpu, problem));
  boxloss::Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = workspace.size();

  float loss, scale;
  boxloss::loss_forward(cpu, problem, {&loss, &scale}, execution);
  const float one = 1;
  float d_pred[4], d_target[4];
  boxloss::loss_backward(cpu, problem, {{&one}}, &scale, {d_pred, d_target}, execution);

  std::printf("%s: loss %g, d pred (%g, %g, %g, %g)\n", cpu.name, loss, d_pred[0], d_pred[1],
              d_pred[2], d_pred[3]);
  // I = 1, U = 7, C = 9; the gradients are worked out in tests/core/test_giou_gradients.cpp.
  const double inner = 103.0 / 441, outer = 103.0 / 1323;
  const bool ok = near(loss, 68.0 / 63) && near(d_pred[0], -outer) && near(d_pred[1], -outer) &&
                  near(d_pred[2], -inner) && near(d_pred[3], -inner) && near(d_target[0], inner) &&
                  near(d_target[1], inner) && near(d_target[2], outer) && near(d_target[3], outer);
  return ok ? 0 : 1;
}
