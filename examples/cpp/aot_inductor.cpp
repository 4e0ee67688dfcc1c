// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the package that export_model.py writes. It calls an operator of boxloss, which the program
// has because it is linked with boxloss::torch.
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <boxloss/torch.hpp>
#include <cstdio>
#include <vector>

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s model.pt2\n", arguments[0]);
    return 2;
  }
  torch::inductor::AOTIModelPackageLoader model(arguments[1]);

  const at::Tensor features = at::rand({2, 4, 8});
  const at::Tensor target = at::rand({5, 4});
  const at::Tensor offsets = at::tensor({0, 3, 5}, at::kLong);
  const std::vector<at::Tensor> results = model.run({features, target, offsets});

  const at::Tensor again = boxloss::box_loss(results[0], target,
                                             {.loss = boxloss::Loss::kCiou,
                                              .offsets = offsets,
                                              .pred_format = boxloss::BoxFormat::kCxcywh,
                                              .target_format = boxloss::BoxFormat::kCxcywh});
  std::printf("package: loss %.9g\nbox_loss: %.9g\n", results[1].item<float>(),
              again.item<float>());
}
