// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "../math/optimization_barrier.hpp"
#include "assign.hpp"

/// The assignment's shortest augmenting paths. A team takes the rows one after the other; at each
/// step of a row's search its threads relax all places and find the nearest. Beside what
/// core/kernels/team.hpp says, the team has
///     first(), further()  the caller's number of all threads that share the places, and how many
///                         these are
///     all(is_so)          whether it is so for all of them, who know it of their own team
///     least(own, turn)    the least candidate of all; what they wrote before is visible after.
///                         `turn` alternates between 0 and 1.
///     of_any_size()       the same threads, as a team of which there is one type
///     kAtOnce             places that a thread reads together
///     kIsCluster          whether it is one of several teams, which have a state each, all alike.
///                         Then least(own, from_row) also gives the row that reached the place.
namespace boxloss {

/// A place that may be the nearest. Of equally near places, the one with the lowest rank is, which
/// no other place has.
template <class Number>
struct Candidate {
  Number distance;
  unsigned rank, place;

  BOXLOSS_HOST_DEVICE bool operator<(const Candidate& other) const {
    return distance < other.distance || (distance == other.distance && rank < other.rank);
  }
};

template <class Number>
BOXLOSS_HOST_DEVICE Candidate<Number> no_candidate() {
  return {unreached<Number>(), ~0u, ~0u};
}

/// How a task's costs are read: where they are or from a copy, and what is minimized for each.
enum class Reading {
  kBySign,    ///< they are finite, and have no limit
  kByRule,    ///< any
  kAsCopied,  ///< to the copy the rule was applied
};

/// A task's costs by row and place. Indices of a copy are 32-bit numbers.
template <class E, Reading kReading, class Index = std::int64_t>
struct Costs {
  using Value = Stored<E>;
  Elements<E> elements;
  Index first, row_stride, place_stride;
  CostRule rule;

  /// The costs of a row. `elements` begins with it, and `first` is 0, unless they are Any or a
  /// copy.
  struct Row {
    Elements<E> elements;
    Index first;
  };

  BOXLOSS_HOST_DEVICE Row row(int row) const {
    const Index at = first + row * row_stride;
    if constexpr (std::is_same_v<E, Any> || kReading == Reading::kAsCopied) {
      return {elements, at};
    } else {
      return {{pointer_barrier(elements.data + at)}, 0};
    }
  }
  BOXLOSS_HOST_DEVICE Value at(const Row& row, unsigned place) const {
    return row.elements.template get<Value>(row.first + static_cast<Index>(place) * place_stride);
  }
  BOXLOSS_HOST_DEVICE double number(Value cost) const {
    switch (kReading) {
      case Reading::kBySign: return static_cast<Value>(rule.sign) * cost;
      case Reading::kByRule: return rule.number(cost);
      case Reading::kAsCopied: return cost;
    }
    return cost;
  }
};

/// Bytes of the paths' state: a dual of each, and of a place its distance; 32-bit numbers.
template <class Number>
BOXLOSS_HOST_DEVICE std::int64_t state_bytes(std::int64_t rows, std::int64_t places) {
  constexpr std::int64_t kNumber = sizeof(Number), kInt = sizeof(int);
  return rows * (kNumber + kInt) + places * (2 * kNumber + 3 * kInt);
}
static_assert(2 * sizeof(Extended) + 3 * sizeof(int) <= kAssignState);

/// Calls use(i) for this thread's part of [0, count).
template <class Team, class Use>
BOXLOSS_HOST_DEVICE void for_own(const Team& team, unsigned count, const Use& use) {
  const auto threads = static_cast<unsigned>(team.threads());
  BOXLOSS_NO_UNROLL
  for (auto i = static_cast<unsigned>(team.thread()); i < count; i += threads) use(i);
}

/// The paths of one task; the team's threads call its functions together. A place belongs to one
/// thread, which alone reads and writes its distance and rank.
///
/// SciPy keeps the remaining places in a list, which is reversed at first. When a place is chosen,
/// the last of the list moves to its position. Of equally near places SciPy takes the last free one
/// in the list or, if none is free, the first. Here each place knows its position in that list, as
/// a rank, of which the lowest wins. Free places have lower ranks than the others. Among free
/// places, a later position is a lower rank; among the others, a higher one.
template <class Number, class Team, class CostsOf>
class AssignPaths {
 public:
  /// `state` has state_bytes<Number>(rows, places).
  BOXLOSS_HOST_DEVICE AssignPaths(Team& team, const CostsOf& costs, unsigned rows, unsigned places,
                                  std::byte* state)
      : team_(team), costs_(costs), rows_(rows), places_(places) {
    dual_of_row_ = reinterpret_cast<Number*>(state);
    dual_of_place_ = dual_of_row_ + rows;
    shortest_ = dual_of_place_ + places;
    row_of_place_ = reinterpret_cast<int*>(shortest_ + places);
    from_row_ = row_of_place_ + places;
    place_of_row_ = from_row_ + places;
    rank_ = reinterpret_cast<unsigned*>(place_of_row_ + rows);
  }

  BOXLOSS_HOST_DEVICE void solve() {
    for_own(team_, rows_, [this](unsigned row) { dual_of_row_[row] = Number{}; });
    for_own(team_, places_, [this](unsigned place) {
      dual_of_place_[place] = Number{};
      row_of_place_[place] = -1;
      if (Team::kIsCluster) rank_[place] = 0;
    });
    team_.sync();
    BOXLOSS_NO_UNROLL
    for (unsigned row = 0; row < rows_; ++row) add(static_cast<int>(row));
  }

  /// -1: none
  BOXLOSS_HOST_DEVICE int row_of(unsigned place) const { return row_of_place_[place]; }

 private:
  static constexpr unsigned kVisited = ~0u;

  /// Where the search is.
  struct Step {
    int row;
    Number length;      ///< of the path to it
    unsigned left;      ///< remaining places, without the one that was visited last
    unsigned visited;   ///< that one,
    unsigned position;  ///< and where it was in the list
  };

  /// Whether the place is this thread's, in its team.
  BOXLOSS_HOST_DEVICE bool is_own(unsigned place) const {
    return static_cast<unsigned>(team_.thread()) == place % static_cast<unsigned>(team_.threads());
  }

  BOXLOSS_HOST_DEVICE void add(int row) {
    Step step{row, Number{}, places_, kVisited, 0};
    if (visit<true>(step)) return take_free_place(step);
    bool is_free = false;
    BOXLOSS_NO_UNROLL
    while (!is_free) is_free = visit<false>(step);
    update(row, step);
    team_.sync();
    if (team_.thread() == 0) assign_path(row, step);
    team_.sync();
  }

  /// Goes on to the nearest place. Returns true if it is free, which ends the search. The first
  /// step reaches every free place, since its dual is 0, so a search ends even if sums overflow
  /// later.
  template <bool kIsFirst>
  BOXLOSS_HOST_DEVICE bool visit(Step& step) {
    const Candidate<Number> nearest = least_of_all<kIsFirst>(relax<kIsFirst>(step));
    step.length = nearest.distance;
    step.visited = nearest.place;
    --step.left;
    if (nearest.rank < places_) return true;
    step.position = nearest.rank - places_;
    step.row = row_of_place_[step.visited];
    return false;
  }

  template <bool kIsFirst>
  BOXLOSS_HOST_DEVICE Candidate<Number> least_of_all(const Candidate<Number>& own) {
    if constexpr (Team::kIsCluster) {
      const auto [nearest, from] = team_.least(own, from_row_);
      if (!kIsFirst || nearest.rank >= places_) note(nearest, from);
      return nearest;
    } else {
      turn_ = 1 - turn_;
      return team_.least(own, turn_);
    }
  }

  /// What the place's thread alone knows, which another block may have.
  BOXLOSS_HOST_DEVICE void note(const Candidate<Number>& visited, int from) {
    if (!is_own(visited.place)) return;
    shortest_[visited.place] = visited.distance;
    from_row_[visited.place] = from;
    rank_[visited.place] = kVisited;
  }

  /// The most common case. Where a step has a barrier, none is needed here: other threads read what
  /// is written only after the next step's.
  BOXLOSS_HOST_DEVICE void take_free_place(const Step& step) {
    if (is_own(step.visited)) {
      dual_of_row_[step.row] = step.length;
      row_of_place_[step.visited] = step.row;
      place_of_row_[step.row] = static_cast<int>(step.visited);
    }
    if (Team::kIsCluster) team_.sync();
  }

  /// Returns the nearest of the thread's remaining places. The first step also initializes the
  /// search's arrays.
  template <bool kIsFirst>
  BOXLOSS_HOST_DEVICE Candidate<Number> relax(const Step& step) {
    Candidate<Number> nearest = no_candidate<Number>();
    const auto costs = costs_.row(step.row);
    const Number dual = dual_of_row_[step.row];
    BOXLOSS_NO_UNROLL
    for (unsigned first = team_.first(); first < places_;
         first += Team::kAtOnce * team_.further()) {
      Place known[Team::kAtOnce];  // all loads first, so that they are in flight together
      BOXLOSS_UNROLL
      for (unsigned i = 0; i < Team::kAtOnce; ++i) {
        known[i] = place_at<kIsFirst>(first + i * team_.further(), costs);
      }
      BOXLOSS_UNROLL
      for (unsigned i = 0; i < Team::kAtOnce; ++i) {
        const Candidate<Number> own =
            relax_place<kIsFirst>(first + i * team_.further(), known[i], dual, step);
        if (own < nearest) nearest = own;
      }
    }
    return nearest;
  }

  struct Place {
    unsigned rank;
    typename CostsOf::Value cost;
    Number dual, distance;
  };

  template <bool kIsFirst>
  BOXLOSS_HOST_DEVICE Place place_at(unsigned place, const typename CostsOf::Row& costs) const {
    if (place >= places_) return {kVisited, 0, Number{}, Number{}};
    Place known{0, costs_.at(costs, place), dual_of_place_[place], unreached<Number>()};
    if constexpr (kIsFirst) {
      known.rank = row_of_place_[place] < 0 ? place : 2 * places_ - 1 - place;
    } else {
      known.rank = rank_[place];
      known.distance = shortest_[place];
    }
    return known;
  }

  template <bool kIsFirst>
  BOXLOSS_HOST_DEVICE Candidate<Number> relax_place(unsigned place, Place known, Number dual,
                                                    const Step& step) {
    if (known.rank == kVisited) return no_candidate<Number>();
    if (!kIsFirst && place == step.visited) {
      rank_[place] = kVisited;
      return no_candidate<Number>();
    }
    const bool is_free = known.rank < places_;
    const bool is_last = known.rank == (is_free ? places_ - 1 - step.left : places_ + step.left);
    if (is_last) known.rank = is_free ? places_ - 1 - step.position : places_ + step.position;
    if (kIsFirst || is_last) rank_[place] = known.rank;
    const Number distance =
        step.length + number_of<Number>(costs_.number(known.cost)) - dual - known.dual;
    const bool is_nearer = distance < known.distance;
    if (is_nearer) known.distance = distance;
    if (kIsFirst || is_nearer) shortest_[place] = known.distance;
    if (is_nearer) from_row_[place] = step.row;
    return {known.distance, known.rank, place};
  }

  /// Changes the duals of each visited place, and of its row, by how much nearer it is than the
  /// end.
  BOXLOSS_HOST_DEVICE void update(int row, const Step& end) {
    if (team_.thread() == 0) dual_of_row_[row] = dual_of_row_[row] + end.length;
    for_own(team_, places_, [&](unsigned place) {
      if (rank_[place] != kVisited && place != end.visited) return;
      const Number nearer = end.length - shortest_[place];
      const int its_row = row_of_place_[place];
      if (its_row >= 0) dual_of_row_[its_row] = dual_of_row_[its_row] + nearer;
      dual_of_place_[place] = dual_of_place_[place] - nearer;
      if (Team::kIsCluster) rank_[place] = 0;
    });
  }

  /// Each row on the path takes the place that it reached; called by one thread.
  BOXLOSS_HOST_DEVICE void assign_path(int row, const Step& end) {
    int place = static_cast<int>(end.visited);
    for (int from = -1; from != row;) {
      from = from_row_[place];
      row_of_place_[place] = from;
      const int before = place_of_row_[from];  // of `row` none, and not used
      place_of_row_[from] = place;
      place = before;
    }
  }

  Team& team_;
  const CostsOf costs_;
  const unsigned rows_, places_;
  Number *dual_of_row_, *dual_of_place_, *shortest_;
  int *row_of_place_, *from_row_, *place_of_row_;
  unsigned* rank_;
  int turn_ = 0;
};

}  // namespace boxloss
