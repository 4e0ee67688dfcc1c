// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <gpu_runtime.hpp>

namespace boxloss::BOXLOSS_GPU {

/// Counts the blocks that have finished, and their valid pairs. Zero between launches: the last
/// block, which completes the count, resets it.
using Counter = unsigned long long;

/// A counter that no concurrent launch uses, or null when all are taken: then the caller zeroes one
/// of its own on the stream. Launches on one stream run in order and share one; a captured launch
/// may be replayed beside anything, so it keeps one for good.
Counter* take_counter(int device, Stream stream);

/// Forward's part of the caller's workspace: three numbers for each block and, if no counter of our
/// own is free, a counter.
constexpr std::int64_t kMaxBlocks = 4096;
constexpr std::int64_t kPartials = 3 * kMaxBlocks;
constexpr std::size_t kWorkspaceBytes = kPartials * sizeof(double) + sizeof(Counter);

}  // namespace boxloss::BOXLOSS_GPU
