// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "assign_paths.hpp"

/// A task of the assignment, by a team. The paths' state is in memory that the team shares if it
/// fits there, otherwise in the workspace. The costs are copied to shared memory if there is room
/// left, otherwise read from where they are.
namespace boxloss {

/// Reads the costs of a task that has columns, and gives whether this thread's numbers are finite.
/// Unless `to` is null, it has room for all, which are copied there, row by row.
template <class E, class Team>
BOXLOSS_HOST_DEVICE bool read_costs(const Team& team, const AssignArgs<E>& a,
                                    const AssignTask& task, Stored<E>* to) {
  constexpr int kAtOnce = 8;
  const auto queries = static_cast<unsigned>(task.queries);
  const auto columns = static_cast<unsigned>(task.columns);
  const std::int64_t by_query = task.is_wide() ? columns : 1;
  const std::int64_t by_column = task.is_wide() ? 1 : queries;
  const unsigned queries_further = team.further() / columns;
  const unsigned columns_further = team.further() % columns;
  unsigned query = team.first() / columns, column = team.first() % columns;
  bool are_finite = true;
  BOXLOSS_NO_UNROLL
  while (query < queries) {
    Stored<E> values[kAtOnce];  // all loads first, so that they are in flight together
    std::int64_t places[kAtOnce];
    BOXLOSS_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const bool is_in = query < queries;
      values[i] = is_in ? cost_at(a, task, static_cast<int>(query), static_cast<int>(column))
                        : Stored<E>(0);
      places[i] = is_in ? query * by_query + column * by_column : -1;
      query += queries_further;
      column += columns_further;
      if (column >= columns) {
        column -= columns;
        ++query;
      }
    }
    BOXLOSS_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const double number = a.rule.number(values[i]);
      are_finite = are_finite && is_finite(number);
      if (to != nullptr && places[i] >= 0) to[places[i]] = static_cast<Stored<E>>(number);
    }
  }
  return are_finite;
}

/// Solves a task, and writes all of its outputs.
template <class Number, class E, class Team, class CostsOf>
BOXLOSS_HOST_DEVICE void assign_task(Team& team, const AssignArgs<E>& a, const AssignTask& task,
                                     const CostsOf& costs, std::byte* state) {
  AssignPaths<Number, Team, CostsOf> paths(team, costs, static_cast<unsigned>(task.rows()),
                                           static_cast<unsigned>(task.places()), state);
  paths.solve();
  for_own(team, static_cast<unsigned>(task.places()), [&](unsigned i) {
    const int row = paths.row_of(i), place = static_cast<int>(i);
    if (row >= 0) {
      set_pair_of_row(a, task, row, place);
    } else if (task.is_wide()) {
      set_no_query(a, task, task.first_column + place);
    } else {
      set_no_column(a, task, place);
    }
  });
}

/// The other cases, compiled once for teams of every size: more state than shared memory has room
/// for, a limit where costs are not copied, and numbers that are not finite.
template <class Team, class E>
BOXLOSS_HOST_DEVICE_CALL void assign_other_task(Team team, const AssignArgs<E>& a,
                                                const AssignTask& task,
                                                const Costs<E, Reading::kByRule>& costs,
                                                std::byte* state, bool are_finite) {
  if (are_finite) {
    assign_task<double>(team, a, task, costs, state);
  } else {
    assign_task<Extended>(team, a, task, costs, state);
  }
}

/// Task i of all, by a team with that much shared memory. Also writes what belongs to no task.
template <class E, class Team>
BOXLOSS_HOST_DEVICE void assign_at(Team& team, const AssignArgs<E>& a, std::int64_t i,
                                   bool are_offsets_right, std::byte* shared, int shared_bytes,
                                   std::byte* workspace, bool& are_all_finite) {
  if (team.thread() == 0) are_all_finite = true;
  team.sync();
  const AssignTask task = task_of(a, i, are_offsets_right);
  BOXLOSS_NO_UNROLL
  for (std::int64_t t = task.columns_begin + team.thread(); t < task.columns_end;
       t += team.threads()) {
    const bool is_own = t >= task.first_column && t < task.first_column + task.columns;
    if (!is_own) set_no_query(a, task, t);
  }
  const auto of_group = static_cast<unsigned>(a.queries / a.groups);
  for_own(team, of_group - static_cast<unsigned>(task.queries),
          [&](unsigned after) { set_no_column(a, task, task.queries + static_cast<int>(after)); });

  const std::int64_t rows = task.rows(), places = task.places();
  const std::int64_t left = shared_bytes - state_bytes<double>(rows, places);
  // Rounded up, since the state begins behind the copies.
  const std::int64_t copied_bytes = (rows * places * sizeof(Stored<E>) + 7) / 8 * 8;
  const bool can_copy =
      !Team::kIsCluster && a.rule.template keeps<Stored<E>>() && copied_bytes <= left;
  auto* const copies = can_copy ? reinterpret_cast<Stored<E>*>(shared) : nullptr;
  if (task.columns > 0 && !read_costs(team, a, task, copies)) are_all_finite = false;
  team.sync();
  const std::int64_t by_row = row_stride(a, task), by_place = place_stride(a, task);
  const std::int64_t first = first_cost(a, task);
  const bool are_finite = team.all(are_all_finite);
  if constexpr (!Team::kIsCluster) {
    if (are_finite && copies != nullptr) {
      const Costs<Stored<E>, Reading::kAsCopied, int> copied = {
          {copies}, 0, static_cast<int>(places), 1, a.rule};
      return assign_task<double>(team, a, task, copied, shared + copied_bytes);
    }
  }
  if (are_finite && left >= 0 && !a.rule.has_limit()) {
    const Costs<E, Reading::kBySign> in_place = {a.cost, first, by_row, by_place, a.rule};
    return assign_task<double>(team, a, task, in_place, shared);
  }
  const Costs<E, Reading::kByRule> in_place = {a.cost, first, by_row, by_place, a.rule};
  if constexpr (Team::kIsCluster) {
    if (are_finite) return assign_task<double>(team, a, task, in_place, shared);
    if (team.first() >= team.threads()) return;  // one block is enough for these
  }
  std::byte* const state =
      workspace + first_state(a, task) * static_cast<std::int64_t>(kAssignState);
  assign_other_task(team.of_any_size(), a, task, in_place, state, are_finite);
}

}  // namespace boxloss
