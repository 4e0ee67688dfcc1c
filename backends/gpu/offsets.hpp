// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/team.hpp"
#include "threads.hpp"

namespace boxloss::BOXLOSS_GPU {

/// are_in_order, called by all threads of a block, at least kThreads.
__device__ inline bool block_are_in_order(const Indices& offsets, std::int64_t images,
                                          std::int64_t rows) {
  __shared__ bool are_right;
  return are_in_order(Block(), are_right, offsets, images, rows);
}

}  // namespace boxloss::BOXLOSS_GPU
