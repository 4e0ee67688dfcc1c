// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "task_aligned_match.hpp"
#include "team.hpp"

/// The highest of many ranks, found by a team.
namespace boxloss {

constexpr unsigned kMostAtOnce = 512;  ///< that are found in one pass
constexpr unsigned kBatch = 1024;

/// What a team shares: ranks, of which the highest are kept.
struct RankCollection {
  Rank ranks[kMostAtOnce + kBatch], sorted[kMostAtOnce];
  unsigned count;
};

/// Leaves the `most` highest, in their order.
template <class Team>
BOXLOSS_HOST_DEVICE void keep_highest(const Team& team, RankCollection& all, unsigned most) {
  const auto thread = static_cast<unsigned>(team.thread());
  const auto threads = static_cast<unsigned>(team.threads());
  const unsigned count = all.count;
  for (unsigned i = thread; i < count; i += threads) {
    const Rank own = all.ranks[i];
    unsigned higher = 0;
    for (unsigned j = 0; j < count; ++j) higher += all.ranks[j] > own ? 1 : 0;
    if (higher < most) all.sorted[higher] = own;
  }
  team.sync();
  const unsigned left = count < most ? count : most;
  for (unsigned i = thread; i < left; i += threads) all.ranks[i] = all.sorted[i];
  if (thread == 0) all.count = left;
  team.sync();
}

/// Calls use(rank) for the `most` highest of what rank_at(i, is_first_pass) gives for i in [0,
/// count), in which no two are equal and 0 is none. Each thread gets the lowest of those, or 0 if
/// there are fewer.
template <class Atomics, class Team, class RankAt, class Use>
BOXLOSS_HOST_DEVICE Rank for_highest(const Team& team, RankCollection& all, unsigned count,
                                     std::int64_t most, const RankAt& rank_at, const Use& use) {
  const auto thread = static_cast<unsigned>(team.thread());
  const auto threads = static_cast<unsigned>(team.threads());
  Rank ceiling = ~Rank{0};
  for (std::int64_t left = most; left > 0;) {
    const auto wanted = static_cast<unsigned>(left < kMostAtOnce ? left : kMostAtOnce);
    if (thread == 0) all.count = 0;
    team.sync();
    Rank floor = 0;
    for (unsigned first = 0; first < count; first += kBatch) {
      BOXLOSS_NO_UNROLL
      for (unsigned i = first + thread; i < first + kBatch && i < count; i += threads) {
        const Rank rank = rank_at(i, left == most);
        if (rank > floor && rank < ceiling) all.ranks[Atomics::fetch_add(&all.count, 1u)] = rank;
      }
      team.sync();
      if (all.count > kMostAtOnce) {
        keep_highest(team, all, wanted);
        floor = all.ranks[wanted - 1];
      }
      team.sync();
    }
    keep_highest(team, all, wanted);
    const unsigned found = all.count;
    for (unsigned i = thread; i < found; i += threads) use(all.ranks[i]);
    const bool are_all = found < wanted;
    ceiling = are_all ? 0 : all.ranks[wanted - 1];
    left = are_all ? 0 : left - wanted;
    team.sync();
  }
  return ceiling;
}

}  // namespace boxloss
