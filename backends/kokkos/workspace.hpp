// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// Where forward's sums go in the caller's workspace: each team's sum and, if no counter of our own
/// is free, a counter.
namespace boxloss::kokkos {

/// Counts the teams that have finished.
using Counter = int;

constexpr std::int64_t kMaxTeams = 4096;
template <class Sum>
constexpr std::size_t kSumsBytes = kMaxTeams * sizeof(Sum) + sizeof(Counter);

}  // namespace boxloss::kokkos
