// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>
#include <algorithm>

#include "math/arithmetic.hpp"
#include "math/ceil_div.hpp"
#include "set_sums.hpp"

/// Loops over rows of neighbouring numbers: each row is taken by a thread of a team, by all of its
/// vector lanes.
namespace boxloss::kokkos {

/// Those lanes, as core/kernels/team.hpp has them. All of them get every result.
template <class Member>
struct VectorLanes {
  const Member& member;

  template <class T, class Index, class Of>
  KOKKOS_FUNCTION T largest(Index count, const Of& of) const {
    T found;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(member, count),
        [&](Index i, T& own) { own = larger(own, of(i)); }, Kokkos::Max<T>(found));
    return found;
  }
  template <class T, class Index, class Of>
  KOKKOS_FUNCTION T sum(Index count, const Of& of) const {
    T total;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(member, count), [&](Index i, T& own) { own += of(i); },
        Kokkos::Sum<T>(total));
    return total;
  }
  template <class T>
  KOKKOS_FUNCTION T share(T value) const {
    return value;
  }
  template <class Index, class Use>
  KOKKOS_FUNCTION void for_each(Index count, const Use& use) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, count), use);
  }
};

/// How a team divides rows into lanes. A row's lanes read a sector of a GPU's memory together; more
/// of them would each have to find out more often where a row lies.
struct RowShape {
  int rows, lanes;
};

template <class Space>
RowShape row_shape(std::int64_t numbers_of_row) {
  if (kIsHost<Space>) return {1, 1};
  int lanes = 1;
  while (lanes < 8 && lanes < numbers_of_row) lanes *= 2;
  return {kDeviceThreads / lanes, lanes};
}

/// Calls use(row) for each row of one of `parts`.
template <class Team, class Use>
KOKKOS_FUNCTION void for_each_row(const Team& team, std::int64_t rows, std::int64_t part,
                                  std::int64_t parts, const Use& use) {
  const std::int64_t end = rows * (part + 1) / parts;
  for (std::int64_t row = rows * part / parts + team.team_rank(); row < end;
       row += team.team_size()) {
    use(row);
  }
}

/// Calls add(row, sum) for all rows of all sets, which gives the row's loss. Unless `losses` is
/// null, it gets these.
template <class Team, class Sum, class Outputs, class Args, class C, class Add>
KOKKOS_FUNCTION void sum_rows(const Team& team, const TeamReducer<Sum, Outputs>& reducer,
                              const SetTeams& teams, const Args& args, C* losses, const Add& add) {
  for (std::int64_t set = teams.first_set(team.league_rank()); set < args.sets;
       set += teams.sets_at_once) {
    Sum own{};
    for_each_row(team, args.rows_of_set(), teams.part(team.league_rank()), teams.of_set,
                 [&](std::int64_t of_set) {
                   const std::int64_t row = set * args.rows_of_set() + of_set;
                   const double loss = add(row, own);
                   if (losses == nullptr) return;
                   Kokkos::single(Kokkos::PerThread(team),
                                  [&] { losses[row] = static_cast<C>(loss); });
                 });
    reducer.reduce(team, own, set, args.sets, teams.of_set);
  }
}

/// make_functor(reducer, teams) sums rows.
template <class Sum, class Space, class Outputs, class MakeFunctor>
void launch_sums(const char* name, const Space& space, const Outputs& outputs,
                 const Execution& execution, std::int64_t sets, std::int64_t rows_of_set,
                 const RowShape& shape, const MakeFunctor& make_functor) {
  const SetTeams teams = set_teams(space, sets, ceil_div(rows_of_set, shape.rows));
  const auto reducer = make_reducer<Sum>(space, outputs, execution, teams.of_set > 1);
  launch(name, TeamPolicy<Space>(space, teams.count(), shape.rows, shape.lanes),
         make_functor(reducer, teams));
}

/// The functor takes one of league_size() parts of the rows.
template <class Space, class Functor>
void launch_rows(const char* name, const Space& space, std::int64_t rows, const RowShape& shape,
                 const Functor& functor) {
  constexpr std::int64_t kMost = 1 << 20;
  const auto teams = static_cast<int>(std::min(ceil_div(rows, shape.rows), kMost));
  launch(name, TeamPolicy<Space>(space, teams, shape.rows, shape.lanes), functor);
}

}  // namespace boxloss::kokkos
