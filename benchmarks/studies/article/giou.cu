// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime.h>

#include <boxloss/loss.hpp>

#include "losses/giou.hpp"
#include "math/arithmetic.hpp"
#include "math/box.hpp"
#include "pairings/grid.hpp"

/// The article's kernel as it describes it: a block of 256 threads for each image, a thread for
/// each slot, float32 alone, on the default stream. It writes GIoUs and which slots are valid;
/// torch adds them up.
namespace {

using Box = boxloss::Box<float>;
using Eps = boxloss::Eps<float>;

constexpr int kSlots = 256;

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

/// Volatile: the assembler would move any other read behind a branch that comes after it.
__device__ Box read_prediction(const float4* boxes, int slot) {
  Box box;
  asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(box.x1), "=f"(box.y1), "=f"(box.x2), "=f"(box.y2)
               : "l"(boxes + slot));
  return box;
}

/// Many times, in place of costlier formulas. Each loss moves two sides of either box, and the next
/// one is of these: no loss can be left out, and no term stays that could be computed once.
__device__ float repeated(Box p, Box t, const Eps& eps, int times) {
  constexpr float kStep = 0x1p-8F;
  float loss;
#pragma unroll 1
  do {
    loss = boxloss::Giou::loss(p, t, eps);
    p.x1 += kStep * loss;
    p.y2 += kStep * loss;
    t.y1 += kStep * loss;
    t.x2 += kStep * loss;
  } while (--times > 0);
  return loss;
}

/// The branch comes before the prediction is read.
template <bool with_branch>
__global__ void __launch_bounds__(kSlots)
    repeated_kernel(const float4* pred, const float4* target, float* losses, Eps eps, int times) {
  const int slot = blockIdx.x * kSlots + threadIdx.x;
  const float4 read = target[slot];
  const Box t = {read.x, read.y, read.z, read.w};
  const bool counts = boxloss::ZeroPadded{}.counts(t);
  float loss = 0;
  if constexpr (with_branch) {
    if (counts) loss = repeated(read_prediction(pred, slot), t, eps, times);
  } else {
    loss = boxloss::select(counts, repeated(read_prediction(pred, slot), t, eps, times), 0.0f);
  }
  losses[slot] = loss;
}

Eps article_eps() { return boxloss::make_eps<float>(1e-5, boxloss::EpsMode::kClamp); }

}  // namespace

extern "C" {

/// Returns a cudaError_t.
int launch(bool with_branch, const float* pred, const float* target, float* giou, bool* valid,
           int images) {
  const auto kernel = with_branch ? giou_kernel<true> : giou_kernel<false>;
  kernel<<<images, kSlots>>>(pred, target, giou, valid, article_eps());
  return cudaGetLastError();
}

/// Likewise.
int launch_repeated(bool with_branch, const float4* pred, const float4* target, float* losses,
                    int images, int times, cudaStream_t stream) {
  const auto kernel = with_branch ? repeated_kernel<true> : repeated_kernel<false>;
  kernel<<<images, kSlots, 0, stream>>>(pred, target, losses, article_eps(), times);
  return cudaGetLastError();
}

}  // extern "C"
