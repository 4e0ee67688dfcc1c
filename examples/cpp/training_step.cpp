// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// A few training steps with libtorch: a small network learns the ground-truth boxes of a ragged
// batch. The device may be given, such as cuda; without one it is the CPU.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <boxloss/torch.hpp>
#include <cstdio>

namespace {

constexpr int kImages = 2, kSlots = 4, kFeatures = 8, kSteps = 20;

/// Boxes as centre and size, in an image whose sides are 1.
struct HeadImpl : torch::nn::Module {
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(kFeatures, 32));
  torch::nn::Linear boxes = register_module("boxes", torch::nn::Linear(32, 4));

  torch::Tensor forward(const torch::Tensor& features) {
    return boxes(hidden(features).relu()).sigmoid();
  }
};
TORCH_MODULE(Head);

}  // namespace

int main(int count, char** arguments) {
  const torch::Device device(count > 1 ? arguments[1] : "cpu");
  torch::manual_seed(0);
  // Drawn on the CPU, as the head is: each device would draw other numbers.
  const torch::Tensor features = torch::randn({kImages, kSlots, kFeatures}).to(device);
  // Three ground-truth boxes in the first image and one in the second: one list, and where images
  // begin.
  const torch::Tensor target = torch::tensor(
      {{0.3, 0.3, 0.2, 0.4}, {0.7, 0.4, 0.3, 0.3}, {0.5, 0.8, 0.8, 0.2}, {0.4, 0.6, 0.5, 0.5}},
      torch::dtype(torch::kFloat).device(device));
  const torch::Tensor offsets = torch::tensor({0, 3, 4}, device);

  Head head;
  head->to(device);
  torch::optim::SGD optimizer(head->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const torch::Tensor loss = boxloss::box_loss(head(features), target,
                                                 {.loss = boxloss::Loss::kCiou,
                                                  .offsets = offsets,
                                                  .pred_format = boxloss::BoxFormat::kCxcywh,
                                                  .target_format = boxloss::BoxFormat::kCxcywh});
    loss.backward();
    optimizer.step();
    std::printf("step %d: loss %.6f\n", step, loss.item<double>());
  }
}
