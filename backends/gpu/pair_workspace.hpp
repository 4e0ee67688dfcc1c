// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "counters.hpp"

/// Forward's part of the caller's workspace: three numbers for each block and, if no counter of our
/// own is free, a counter.
namespace boxloss::BOXLOSS_GPU {

constexpr std::int64_t kMaxBlocks = 4096;
constexpr std::int64_t kPartials = 3 * kMaxBlocks;
constexpr std::size_t kWorkspaceBytes = kPartials * sizeof(double) + sizeof(Counter);

}  // namespace boxloss::BOXLOSS_GPU
