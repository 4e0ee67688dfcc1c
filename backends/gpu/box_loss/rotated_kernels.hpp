// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "box_loss/pair_kernels.hpp"
#include "kernels/box_loss/rotated_rows.hpp"

/// The loops over contiguous rotated boxes: a thread takes a pair.
namespace boxloss::BOXLOSS_GPU {

/// As kMinBlocks; a pair's two boxes take few registers. Before compute capability 8.0 a processor
/// has 1,024 threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kRowBlocks = kFloatBlocks;
#else
constexpr int kRowBlocks = kFloatBlocks == 1 ? 1 : 5;
#endif

template <class F, class C>
__global__ void __launch_bounds__(kThreads, kRowBlocks)
    forward_rows(const ForwardArgs<F, C> a, const RotatedRows<C> rows, const Reducer<C> reducer) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  LossPartial own{};
#pragma unroll 1
  for (; row < a.slots; row += step) own += forward_row(a, rows, row);
  finish_forward(a, reducer, own);
}

template <class F, class C, bool kTarget>
__global__ void __launch_bounds__(kThreads, kFloatBlocks)
    backward_rows(const BackwardArgs<F, C, C, C> a, const RotatedRows<C> rows) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row < a.slots) backward_row<kTarget>(a, rows, row);
}

}  // namespace boxloss::BOXLOSS_GPU
