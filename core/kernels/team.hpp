// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../pairings/indices.hpp"

/// Bodies of kernels for a *team* of threads, which a backend provides. All threads of all teams of
/// a launch run the body, with
///     thread(), threads()  the caller's number in its team, and how many there are
///     number(), count()    the team's number, and how many there are
///     sync()               waits for the team; what its threads wrote before is visible after
/// What a team shares is a struct that the caller gives, not initialized. A team may be one thread.
///
/// Where several threads take one item, they are its *lanes*, of which there may be one, with
///     largest<T>(count, of)  of of(0) to of(count - 1), in all lanes; NaN may be lost
///     sum<T>(count, of)      likewise, from T{} by +=, in the first lane
///     share(value)           the first lane's, in all
///     for_each(count, use)   calls use(0) to use(count - 1)
namespace boxloss {

/// are_in_order, called by all threads of a team, which share `are_right`.
template <class Team>
BOXLOSS_HOST_DEVICE bool are_in_order(const Team& team, bool& are_right, const Indices& offsets,
                                      std::int64_t images, std::int64_t rows) {
  if (team.thread() == 0) are_right = offsets[0] >= 0 && offsets[images] <= rows;
  team.sync();
  BOXLOSS_NO_UNROLL
  for (std::int64_t b = team.thread(); b < images; b += team.threads()) {
    if (offsets[b] > offsets[b + 1]) are_right = false;
  }
  team.sync();
  return are_right;
}

}  // namespace boxloss
