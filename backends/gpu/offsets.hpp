// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pairings/indices.hpp"
#include "threads.hpp"

namespace boxloss::BOXLOSS_GPU {

/// are_in_order, called by all threads of a block, at least kThreads.
__device__ inline bool block_are_in_order(const Indices& offsets, std::int64_t images,
                                          std::int64_t rows) {
  __shared__ bool are_right;
  if (threadIdx.x == 0) are_right = offsets[0] >= 0 && offsets[images] <= rows;
  __syncthreads();
#pragma unroll 1
  for (std::int64_t b = threadIdx.x; b < images; b += kThreads) {
    if (offsets[b] > offsets[b + 1]) are_right = false;
  }
  __syncthreads();
  return are_right;
}

}  // namespace boxloss::BOXLOSS_GPU
