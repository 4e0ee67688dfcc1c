// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// The GIoU loss of two images' boxes and its gradient, in arrays of the host, without a framework.
#include <boxloss/boxloss.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr std::int64_t kImages = 2, kSlots = 4;

// The network predicts four boxes for each image.
const std::vector<float> kPred = {12, 8,  58, 52, 80, 25, 125, 85, 10, 5,  240, 250, 0,  0, 9,  9,
                                  33, 38, 66, 85, 1,  1,  2,   2,  50, 50, 60,  60,  70, 7, 77, 17};
// The images have three true boxes and one: rows 0 to 2 and row 3 of one list.
const std::vector<std::uint8_t> kTarget = {10, 10, 60,  50,  80, 20, 120, 90,
                                           0,  0,  255, 255, 30, 40, 70,  80};
const std::vector<std::int64_t> kOffsets = {0, 3, 4};

}  // namespace

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

  std::printf("%s: loss %.9g\n", cpu.name, loss);
  for (std::int64_t row = 0; row < kImages * kSlots; ++row) {
    const float* g = &gradient[row * 4];
    std::printf("image %d, slot %d: gradient %.9g %.9g %.9g %.9g\n", static_cast<int>(row / kSlots),
                static_cast<int>(row % kSlots), g[0], g[1], g[2], g[3]);
  }
}
