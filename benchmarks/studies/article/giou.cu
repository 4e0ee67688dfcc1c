// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime.h>

#include <boxloss/loss.hpp>

#include "losses/giou.hpp"
#include "math/box.hpp"

/// The article's kernel as it describes it: a block of 256 threads for each image, a thread for
/// each slot, float32 alone, on the default stream. It writes GIoUs and which slots are valid;
/// torch adds them up.
namespace {

using Box = boxloss::Box<float>;
using Eps = boxloss::Eps<float>;

__device__ float giou_of(const float* pred, const float* target, const Eps& eps) {
  return 1 - boxloss::Giou::loss(Box{pred[0], pred[1], pred[2], pred[3]},
                                 Box{target[0], target[1], target[2], target[3]}, eps);
}

template <bool with_branch>
__global__ void giou_kernel(const float* pred, const float* target, float* giou, bool* valid,
                            Eps eps) {
  const int slot = blockIdx.x * blockDim.x + threadIdx.x;
  const bool counts = target[4 * slot + 3] != 0;
  valid[slot] = counts;
  if constexpr (with_branch) {
    if (counts) {
      giou[slot] = giou_of(pred + 4 * slot, target + 4 * slot, eps);
    } else {
      giou[slot] = 0;
    }
  } else {
    giou[slot] = giou_of(pred + 4 * slot, target + 4 * slot, eps) * counts;
  }
}

}  // namespace

extern "C" {

/// Returns a cudaError_t.
int launch(bool with_branch, const float* pred, const float* target, float* giou, bool* valid,
           int images) {
  const auto kernel = with_branch ? giou_kernel<true> : giou_kernel<false>;
  const Eps eps = boxloss::make_eps<float>(1e-5, boxloss::EpsMode::kClamp);
  kernel<<<images, 256>>>(pred, target, giou, valid, eps);
  return cudaGetLastError();
}

}  // extern "C"
