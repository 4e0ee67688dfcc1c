// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// The GIoU loss of two images' boxes and its gradient, in arrays of the host, without a framework.
#include <boxloss/boxloss.hpp>
#include <cstddef>
#include <vector>

#include "two_images.hpp"

int main() {
  boxloss::LossProblem problem;
  problem.loss = boxloss::Loss::kGiou;
  problem.pred = {kPred.data(), boxloss::DType::kF32};
  problem.pred.images = kImages;
  problem.pred.slots = kSlots;
  problem.pred.image_stride = kSlots * 4;
  problem.target = {kTarget.data(), boxloss::DType::kU8};
  problem.target.slots = kOffsets.back();
  problem.pairing = {boxloss::Pairing::Kind::kOffsets, {kOffsets.data(), boxloss::DType::kI64}};

  // The caller owns all memory. One workspace serves every call that needs no more.
  const boxloss::Implementation& cpu = boxloss::implementation("cpu");
  std::vector<std::byte> workspace(boxloss::loss_workspace_bytes(cpu, problem));
  boxloss::Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = workspace.size();

  float loss, scale;
  boxloss::loss_forward(cpu, problem, {&loss, &scale}, execution);

  const float upstream = 1;  // the derivative of what is minimised, by the loss
  boxloss::GradOutputs grads;
  grads.loss.data = &upstream;
  std::vector<float> gradient(kPred.size());
  boxloss::loss_backward(cpu, problem, grads, &scale, {gradient.data()}, execution);

  print(cpu.name, loss, gradient);
}
