// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0

#include <ATen/ATen.h>
#include <torch/library.h>

#include <tuple>

/// The article's kernels, written anew: a block of 256 threads for each image, a thread for each
/// slot, float32 alone, on the default stream. A kernel writes GIoUs and which slots are valid;
/// torch adds them up. The formula is the article's, and shares nothing with boxloss.
namespace {

template <bool with_clamps>
__device__ float side(float from, float to) {
  return with_clamps ? max(to - from, 0.f) : to - from;
}

template <bool with_clamps>
__device__ float giou_of(const float* pred, const float* target) {
  const float eps = 1e-5f;
  const float pred_area = (pred[2] - pred[0]) * (pred[3] - pred[1]);
  const float target_area = (target[2] - target[0]) * (target[3] - target[1]);
  const float near_x = max(pred[0], target[0]), near_y = max(pred[1], target[1]);
  const float far_x = min(pred[2], target[2]), far_y = min(pred[3], target[3]);
  const float overlap = side<with_clamps>(near_x, far_x) * side<with_clamps>(near_y, far_y);
  const float united = pred_area + target_area - overlap;
  const float iou = overlap / max(united, eps);
  const float least_x = min(pred[0], target[0]), least_y = min(pred[1], target[1]);
  const float most_x = max(pred[2], target[2]), most_y = max(pred[3], target[3]);
  const float enclosing = side<with_clamps>(least_x, most_x) * side<with_clamps>(least_y, most_y);
  return iou - (enclosing - united) / max(enclosing, eps);
}

template <bool with_clamps, bool with_branch>
__global__ void giou_kernel(const float* pred, const float* target, float* giou, bool* valid) {
  const int slot = blockIdx.x * blockDim.x + threadIdx.x;
  const bool counts = target[4 * slot + 3] != 0;
  valid[slot] = counts;
  if constexpr (with_branch) {
    if (counts) {
      giou[slot] = giou_of<with_clamps>(pred + 4 * slot, target + 4 * slot);
    } else {
      giou[slot] = 0;
    }
  } else {
    giou[slot] = giou_of<with_clamps>(pred + 4 * slot, target + 4 * slot) * counts;
  }
}

using Gious = std::tuple<at::Tensor, at::Tensor>;  // and which of them are valid

Gious gious(const at::Tensor& pred, const at::Tensor& target, bool with_clamps, bool with_branch) {
  constexpr int kSlots = 256;
  TORCH_CHECK(pred.sizes() == target.sizes() && pred.size(1) == kSlots && pred.size(2) == 4);
  const at::Tensor guesses = pred.contiguous(), truths = target.contiguous();
  at::Tensor giou = at::empty({pred.size(0), kSlots}, pred.options());
  at::Tensor valid = at::empty({pred.size(0), kSlots}, pred.options().dtype(at::kBool));
  const auto kernel = with_clamps
                          ? (with_branch ? giou_kernel<true, true> : giou_kernel<true, false>)
                          : (with_branch ? giou_kernel<false, true> : giou_kernel<false, false>);
  kernel<<<pred.size(0), kSlots>>>(guesses.const_data_ptr<float>(), truths.const_data_ptr<float>(),
                                   giou.mutable_data_ptr<float>(), valid.mutable_data_ptr<bool>());
  TORCH_CHECK(cudaGetLastError() == cudaSuccess);
  return {giou, valid};
}

at::Tensor mean(const at::Tensor& giou, const at::Tensor& valid) {
  return giou.sum() / valid.sum().clamp(1);
}

at::Tensor loss(const at::Tensor& pred, const at::Tensor& target, bool with_clamps,
                bool with_branch) {
  const auto [giou, valid] = gious(pred, target, with_clamps, with_branch);
  return mean(giou, valid);
}

}  // namespace

TORCH_LIBRARY(article, library) {
  library.def("gious(Tensor pred, Tensor target, bool clamps, bool branch) -> (Tensor, Tensor)");
  library.def("mean(Tensor giou, Tensor valid) -> Tensor");
  library.def("loss(Tensor pred, Tensor target, bool clamps, bool branch) -> Tensor");
}

TORCH_LIBRARY_IMPL(article, CUDA, library) {
  library.impl("gious", &gious);
  library.impl("mean", &mean);
  library.impl("loss", &loss);
}
