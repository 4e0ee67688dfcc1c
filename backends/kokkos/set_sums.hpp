// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <boxloss/execution.hpp>

#include "kokkos_runtime.hpp"
#include "launch.hpp"
#include "workspace.hpp"

/// Sums of sets over all teams in one launch. Each team writes its sum to the caller's workspace,
/// and the last one to finish adds them in order. Kokkos' own reductions over all teams would use
/// memory of the instance, which captured launches that run at the same time would share.
namespace boxloss::kokkos {

/// What Kokkos::reduction_identity is to be for a sum.
template <class Sum>
struct SumFromZero {
  KOKKOS_FORCEINLINE_FUNCTION static constexpr Sum sum() { return {}; }
};

/// The number of teams that registers must suffice for on each processor of a GPU: as many as are
/// launched, if 2048 threads fit on one.
constexpr int kTeamsPerProcessor = 4;

template <class Space>
using TeamPolicy =
    Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<kDeviceThreads, kTeamsPerProcessor>>;
template <class Space>
using Team = typename TeamPolicy<Space>::member_type;

/// The largest number of teams. On the host it does not depend on the threads, so the sum does not
/// either; on a GPU it is enough for half of its threads, so that there are fewer sums to add.
template <class Space>
std::int64_t most_teams(const Space& space) {
  if (kIsHost<Space>) return 256;
  return std::clamp<std::int64_t>(space.concurrency() / (2 * kDeviceThreads), 1, kMaxTeams);
}

/// Each set has `of_set` consecutive teams; where that is one, a team may take several sets, one
/// after the other.
struct SetTeams {
  int of_set, sets_at_once;

  int count() const { return of_set * sets_at_once; }
  KOKKOS_FUNCTION std::int64_t first_set(int team) const { return team / of_set; }
  KOKKOS_FUNCTION int part(int team) const { return team % of_set; }
};

template <class Space>
SetTeams set_teams(const Space& space, std::int64_t sets, std::int64_t wanted_of_set) {
  const std::int64_t most = most_teams(space);
  const std::int64_t of_set =
      std::clamp<std::int64_t>(wanted_of_set, 1, std::max<std::int64_t>(most / sets, 1));
  const std::int64_t at_once = std::min(sets, std::max<std::int64_t>(most / of_set, 1));
  return {static_cast<int>(of_set), static_cast<int>(at_once)};
}

/// Adds the teams' sums up to one for each set, and gives it to outputs.write(sum, set). Where a
/// set has several teams, the last team of all adds them.
template <class Sum, class Outputs>
struct TeamReducer {
  Outputs outputs;
  Sum* sums;          ///< one for each team
  Counter* arrivals;  ///< zero between launches

  /// Called by all threads of a team, with their own part of a set's sum. The set has `teams`
  /// consecutive teams.
  template <class Team>
  KOKKOS_FUNCTION void reduce(const Team& team, Sum own, std::int64_t set, std::int64_t sets,
                              int teams) const {
    team.team_reduce(Kokkos::Sum<Sum>(own));
    if (teams == 1) {
      Kokkos::single(Kokkos::PerTeam(team), [&] { outputs.write(own, set); });
      return;
    }
    int is_last = 0;
    Kokkos::single(
        Kokkos::PerTeam(team),
        [&](int& last) {
          sums[team.league_rank()] = own;
          last = desul::atomic_fetch_add(arrivals, 1, desul::MemoryOrderAcqRel(),
                                         desul::MemoryScopeDevice()) == team.league_size() - 1
                     ? 1
                     : 0;
        },
        is_last);
    if (is_last == 0) return;

    for (std::int64_t s = 0; s < sets; ++s) {
      Sum total{};
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, teams),
          [&](int i, Sum& sum) { sum += sums[s * teams + i]; }, Kokkos::Sum<Sum>(total));
      Kokkos::single(Kokkos::PerTeam(team), [&] { outputs.write(total, s); });
    }
    Kokkos::single(Kokkos::PerTeam(team), [&] { *arrivals = 0; });
  }
};

/// Only teams that share their sums need a counter.
template <class Sum, class Space, class Outputs>
TeamReducer<Sum, Outputs> make_reducer(const Space& space, const Outputs& outputs,
                                       const Execution& execution, bool shares_sums) {
  auto* const sums = static_cast<Sum*>(execution.workspace);
  TeamReducer<Sum, Outputs> reducer{outputs, sums, nullptr};
  if (!shares_sums) return reducer;
  if constexpr (!kIsHost<Space>) reducer.arrivals = take_counter(execution);
  if (reducer.arrivals == nullptr) {
    reducer.arrivals = reinterpret_cast<Counter*>(sums + kMaxTeams);
    zero(space, reducer.arrivals, sizeof(Counter));
  }
  return reducer;
}

}  // namespace boxloss::kokkos
