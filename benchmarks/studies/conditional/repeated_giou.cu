// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime.h>

#include <boxloss/loss.hpp>
#include <cstdint>

#include "losses/giou.hpp"
#include "math/arithmetic.hpp"
#include "math/box.hpp"
#include "math/ceil_div.hpp"
#include "pairings/grid.hpp"

/// The library's GIoU loss, many times for each pair, by a kernel that does or does not branch on
/// whether a slot counts. __init__.py compiles it, and says what the compiler made of it.
namespace {

using boxloss::Box;
using Eps = boxloss::Eps<float>;

constexpr int kThreads = 256;  // a block for each of the article's images
constexpr int kWarp = 32;

enum class Skip { kNothing, kFormula, kFormulaAndPrediction };

/// Which warp of a block takes an image's first slots, its second, …
enum class Warps { kInOrder, kInTurn };

__device__ Box<float> read_target(const float4* boxes, std::int64_t slot) {
  const float4 box = boxes[slot];
  return {box.x, box.y, box.z, box.w};
}

/// Volatile: the assembler would move any other read behind a branch that comes after it.
__device__ Box<float> read_prediction(const float4* boxes, std::int64_t slot) {
  Box<float> box;
  asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(box.x1), "=f"(box.y1), "=f"(box.x2), "=f"(box.y2)
               : "l"(boxes + slot));
  return box;
}

/// Each loss moves two sides of either box, and the next one is of these: no loss can be left out,
/// and no term of the formula stays that could be computed once.
__device__ float repeated(Box<float> p, Box<float> t, const Eps& eps, float step, int times) {
  float loss;
#pragma unroll 1
  do {
    loss = boxloss::Giou::loss(p, t, eps);
    p.x1 += step * loss;
    p.y2 += step * loss;
    t.y1 += step * loss;
    t.x2 += step * loss;
  } while (--times > 0);
  return loss;
}

template <Skip skip, Warps warps>
__global__ void __launch_bounds__(kThreads)
    repeated_giou(const float4* pred, const float4* __restrict__ target, float* __restrict__ losses,
                  std::int64_t slots, Eps eps, float step, int times) {
  const unsigned turn = warps == Warps::kInTurn ? blockIdx.x * kWarp : 0;
  const unsigned place = (threadIdx.x + turn) % kThreads;
  const std::int64_t slot = std::int64_t{blockIdx.x} * kThreads + place;
  if (slot >= slots) return;
  const Box<float> t = read_target(target, slot);
  const bool counts = boxloss::ZeroPadded{}.counts(t);
  Box<float> p = {};
  if constexpr (skip != Skip::kFormulaAndPrediction) p = read_prediction(pred, slot);
  float loss = 0;
  if constexpr (skip == Skip::kNothing) {
    loss = boxloss::select(counts, repeated(p, t, eps, step, times), 0.0f);
  } else if (counts) {
    if constexpr (skip == Skip::kFormulaAndPrediction) p = read_prediction(pred, slot);
    loss = repeated(p, t, eps, step, times);
  }
  losses[slot] = loss;
}

using Kernel = decltype(&repeated_giou<Skip::kNothing, Warps::kInOrder>);
/// In the order of VARIANTS in __init__.py.
constexpr Kernel kKernels[] = {
    repeated_giou<Skip::kNothing, Warps::kInOrder>,
    repeated_giou<Skip::kFormula, Warps::kInOrder>,
    repeated_giou<Skip::kFormulaAndPrediction, Warps::kInOrder>,
    repeated_giou<Skip::kFormulaAndPrediction, Warps::kInTurn>,
};

}  // namespace

/// An int that is returned is a cudaError_t.
extern "C" {

int launch(int kernel, const float4* pred, const float4* target, float* losses, std::int64_t slots,
           double eps, double step, int times, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(boxloss::ceil_div(slots, kThreads));
  kKernels[kernel]<<<blocks, kThreads, 0, stream>>>(
      pred, target, losses, slots, boxloss::make_eps<float>(eps, boxloss::EpsMode::kClamp),
      static_cast<float>(step), times);
  return cudaGetLastError();
}

int registers(int kernel, int* per_thread) {
  cudaFuncAttributes attributes = {};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, kKernels[kernel]);
  *per_thread = attributes.numRegs;
  return error;
}

int threads_at_once(int kernel, int* per_multiprocessor) {
  int blocks = 0;
  const cudaError_t error =
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kKernels[kernel], kThreads, 0);
  *per_multiprocessor = blocks * kThreads;
  return error;
}

const char* words(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

}  // extern "C"
