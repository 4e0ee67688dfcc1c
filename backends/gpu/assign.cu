// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <algorithm>

#include "cluster.hpp"
#include "dispatch/assign.hpp"
#include "math/bits.hpp"
#include "math/ceil_div.hpp"
#include "offsets.hpp"
#include "operations.hpp"
#include "threads.hpp"

/// The assignment: a team of threads for each task, by shortest augmenting paths as in cpu/native.
/// The team takes the rows one after the other; at each step of a row's search its threads relax
/// all places and find the nearest. The paths' state is in shared memory if it fits there,
/// otherwise in the workspace. The costs are copied to shared memory if there is room left,
/// otherwise read from where they are.
namespace boxloss::BOXLOSS_GPU {

constexpr unsigned kMostThreads = 512;
constexpr unsigned kMostGroups = kMostThreads / kLanes;

/// The threads of a block that solve a task together: a group of kLanes, of which a block has
/// several, or the whole block. kThreadsOfTeam is how many they are, or 0 where that is known at
/// run time only.
template <unsigned kThreadsOfTeam>
struct Team {
  static constexpr bool kIsLarge = kThreadsOfTeam > kThreads, kIsCluster = false;
  unsigned threads, thread, number;

  __device__ explicit Team(unsigned count)
      : threads(count), thread(threadIdx.x % size()), number(threadIdx.x / size()) {}

  __device__ unsigned size() const { return kThreadsOfTeam == 0 ? threads : kThreadsOfTeam; }
  __device__ bool is_group() const { return size() == kLanes; }
  __device__ static bool all(bool is_so) { return is_so; }
  /// Of all threads that share the places.
  __device__ unsigned first() const { return thread; }
  __device__ unsigned further() const { return size(); }

  __device__ void sync() const {
    if (is_group()) {
      sync_lanes();
    } else {
      __syncthreads();
    }
  }

  /// Calls use(i) for this thread's part of [0, count).
  template <class Use>
  __device__ void for_own(unsigned count, const Use& use) const {
#pragma unroll 1
    for (unsigned i = thread; i < count; i += size()) use(i);
  }
};

/// A place that may be the nearest. Of equally near places, the one with the lowest rank is, which
/// no other place has.
template <class Number>
struct Candidate {
  Number distance;
  unsigned rank, place;

  __device__ bool operator<(const Candidate& other) const {
    return distance < other.distance || (distance == other.distance && rank < other.rank);
  }
};

template <class Number>
__device__ Candidate<Number> no_candidate() {
  return {unreached<Number>(), ~0u, ~0u};
}

/// The least value of the lanes that are in; those that have another are no longer in.
__device__ inline unsigned keep_least(bool& is_in, unsigned value) {
  const unsigned own = is_in ? value : ~0u, least = least_of_lanes(own);
  is_in = is_in && own == least;
  return least;
}

__device__ inline unsigned long long keep_least(bool& is_in, unsigned long long value) {
  const unsigned long long high = keep_least(is_in, static_cast<unsigned>(value >> 32));
  return high << 32 | keep_least(is_in, static_cast<unsigned>(value));
}

constexpr unsigned long long kSignBit = 1ull << 63;

/// A distance as a number in the same order. It is a sum that begins with +0, so it is not -0.
__device__ inline unsigned long long bits_of(double distance) {
  const auto bits = bit_cast<unsigned long long>(distance);
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}
__device__ inline double distance_of(unsigned long long bits) {
  return bit_cast<double>((bits & kSignBit) != 0 ? bits ^ kSignBit : ~bits);
}

__device__ inline double keep_least(bool& is_in, double distance) {
  return distance_of(keep_least(is_in, bits_of(distance)));
}

/// `nonfinite` is below 0 only if sums overflow. It is compared as a signed number even then, as in
/// other implementations.
__device__ inline Extended keep_least(bool& is_in, Extended value) {
  const auto bits = static_cast<unsigned long long>(value.nonfinite) ^ kSignBit;
  const auto least = static_cast<std::int64_t>(keep_least(is_in, bits) ^ kSignBit);
  return {least, keep_least(is_in, value.finite)};
}

/// The least of the group, in each of its lanes.
template <class Number>
__device__ Candidate<Number> least_of_lanes(const Candidate<Number>& own) {
  bool is_in = true;
  Candidate<Number> least;
  least.distance = keep_least(is_in, own.distance);
  least.rank = keep_least(is_in, own.rank);
  least.place = keep_least(is_in, own.place);
  return least;
}

/// Whether the lane has it.
template <class Number>
__device__ bool has_least_of_lanes(const Candidate<Number>& own) {
  bool is_in = true;
  keep_least(is_in, own.distance);
  keep_least(is_in, own.rank);
  return is_in;
}

/// The least of the team's, for all its threads. What they wrote before is visible to them after.
/// `turn` alternates between 0 and 1, so that one barrier is enough.
template <class Of, class Number>
__device__ Candidate<Number> least_of_team(const Of& team, const Candidate<Number>& own, int turn) {
  if (team.is_group()) {
    team.sync();
    return least_of_lanes(own);
  }
  __shared__ Candidate<Number> of_groups[2][kMostGroups];
  if (has_least_of_lanes(own)) of_groups[turn][team.thread / kLanes] = own;
  team.sync();
  return least_of_lanes(of_groups[turn][team.thread % kLanes % (team.size() / kLanes)]);
}

#if defined(__CUDA_ARCH__) && defined(BOXLOSS_HAS_CLUSTERS) && __CUDA_ARCH__ >= 900
/// A cluster of blocks as one team. Each block has the whole state, and changes it as all others
/// do; the distances of a search alone are divided among the threads of all blocks.
template <unsigned kThreadsOfBlock>
class ClusterTeam {
 public:
  static constexpr bool kIsLarge = false, kIsCluster = true;
  static constexpr unsigned number = 0;
  const unsigned thread = threadIdx.x;

  __device__ explicit ClusterTeam(Mailbox<kThreadsOfBlock>& box) : exchange_(box) {}

  static constexpr __device__ unsigned size() { return kThreadsOfBlock; }
  __device__ unsigned first() const { return Exchange<kThreadsOfBlock>::block() * size() + thread; }
  __device__ unsigned further() const { return kBlocksOfCluster * size(); }
  __device__ void sync() const { __syncthreads(); }

  template <class Use>
  __device__ void for_own(unsigned count, const Use& use) const {
#pragma unroll 1
    for (unsigned i = thread; i < count; i += size()) use(i);
  }

  struct Reached {
    Candidate<double> nearest;
    int from;  ///< the row by way of which it is
  };

  /// The nearest place of all threads, each with its own. Rows and places are numbers of 21 bits.
  __device__ Reached least(const Candidate<double>& own, const int* from_row) {
    const unsigned from = own.place == ~0u ? 0 : static_cast<unsigned>(from_row[own.place]);
    const std::uint64_t rest = static_cast<std::uint64_t>(own.rank) << 42 |
                               static_cast<std::uint64_t>(own.place & kMask) << 21 | from;
    const Message* const all = exchange_.swap(least_of_lanes({bits_of(own.distance), rest}));
    Message nearest = all[thread % kLanes];
#pragma unroll
    for (unsigned i = kLanes; i < Mailbox<kThreadsOfBlock>::kGroups; i += kLanes) {
      const Message other = all[i + thread % kLanes];
      const bool is_nearer =
          other.high < nearest.high || (other.high == nearest.high && other.low < nearest.low);
      if (is_nearer) nearest = other;
    }
    nearest = least_of_lanes(nearest);
    return {{distance_of(nearest.high), static_cast<unsigned>(nearest.low >> 42),
             static_cast<unsigned>(nearest.low >> 21) & kMask},
            static_cast<int>(nearest.low & kMask)};
  }

  /// Whether all blocks say so.
  __device__ bool all(bool is_so) {
    const Message* const said = exchange_.swap({is_so ? 1u : 0u, 0});
    bool are_so = true;
    for (unsigned i = 0; i < Mailbox<kThreadsOfBlock>::kGroups; ++i) {
      are_so = are_so && said[i].high != 0;
    }
    return are_so;
  }

 private:
  static constexpr unsigned kMask = (1u << 21) - 1;

  static __device__ Message least_of_lanes(const Message& own) {
    bool is_in = true;
    const auto high = keep_least(is_in, static_cast<unsigned long long>(own.high));
    return {high, keep_least(is_in, static_cast<unsigned long long>(own.low))};
  }

  Exchange<kThreadsOfBlock> exchange_;
};
#endif

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

  __device__ Index first_of(int row) const { return first + row * row_stride; }
  __device__ Value at(Index row, unsigned place) const {
    return elements.template get<Value>(row + static_cast<Index>(place) * place_stride);
  }
  __device__ double number(Value cost) const {
    switch (kReading) {
      case Reading::kBySign: return static_cast<Value>(rule.sign) * cost;
      case Reading::kByRule: return rule.number(cost);
      case Reading::kAsCopied: return cost;
    }
    return cost;
  }
};

/// The paths of one task; the team's threads call its functions together. A place belongs to one
/// thread, which alone reads and writes its distance and rank.
///
/// SciPy keeps the remaining places in a list, which is reversed at first. When a place is chosen,
/// the last of the list moves to its position. Of equally near places SciPy takes the last free one
/// in the list or, if none is free, the first. Here each place knows its position in that list, as
/// a rank, of which the lowest wins. Free places have lower ranks than the others. Among free
/// places, a later position is a lower rank; among the others, a higher one.
template <class Number, class Of, class CostsOf>
class TeamPaths {
 public:
  /// `state` has state_bytes<Number>(rows, places).
  __device__ TeamPaths(Of& team, const CostsOf& costs, unsigned rows, unsigned places,
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

  __device__ void solve() {
    team_.for_own(rows_, [this](unsigned row) { dual_of_row_[row] = Number{}; });
    team_.for_own(places_, [this](unsigned place) {
      dual_of_place_[place] = Number{};
      row_of_place_[place] = -1;
      if (Of::kIsCluster) rank_[place] = 0;
    });
    team_.sync();
#pragma unroll 1
    for (unsigned row = 0; row < rows_; ++row) add(static_cast<int>(row));
  }

  /// -1: none
  __device__ int row_of(unsigned place) const { return row_of_place_[place]; }

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

  __device__ void add(int row) {
    Step step{row, Number{}, places_, kVisited, 0};
    if (visit<true>(step)) return take_free_place(step);
    bool is_free = false;
#pragma unroll 1
    while (!is_free) is_free = visit<false>(step);
    update(row, step);
    team_.sync();
    if (team_.thread == 0) assign_path(row, step);
    team_.sync();
  }

  /// Goes on to the nearest place. Returns true if it is free, which ends the search. The first
  /// step reaches every free place, since its dual is 0, so a search ends even if sums overflow
  /// later.
  template <bool kIsFirst>
  __device__ bool visit(Step& step) {
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
  __device__ Candidate<Number> least_of_all(const Candidate<Number>& own) {
    if constexpr (Of::kIsCluster) {
      const auto [nearest, from] = team_.least(own, from_row_);
      if (!kIsFirst || nearest.rank >= places_) note(nearest, from);
      return nearest;
    } else {
      turn_ = 1 - turn_;
      return least_of_team(team_, own, turn_);
    }
  }

  /// What the place's thread alone knows, which another block may have.
  __device__ void note(const Candidate<Number>& visited, int from) {
    if (team_.thread != visited.place % team_.size()) return;
    shortest_[visited.place] = visited.distance;
    from_row_[visited.place] = from;
    rank_[visited.place] = kVisited;
  }

  /// The most common case. Where a step has a barrier, none is needed here: other threads read what
  /// is written only after the next step's.
  __device__ void take_free_place(const Step& step) {
    if (team_.thread == step.visited % team_.size()) {
      dual_of_row_[step.row] = step.length;
      row_of_place_[step.visited] = step.row;
      place_of_row_[step.row] = static_cast<int>(step.visited);
    }
    if (Of::kIsCluster) team_.sync();
  }

  /// Returns the nearest of the thread's remaining places. The first step also initializes the
  /// search's arrays.
  template <bool kIsFirst>
  __device__ Candidate<Number> relax(const Step& step) {
    constexpr unsigned kAtOnce = Of::kIsLarge ? 4 : 2;
    Candidate<Number> nearest = no_candidate<Number>();
    const auto costs = costs_.first_of(step.row);
    const Number dual = dual_of_row_[step.row];
#pragma unroll 1
    for (unsigned first = team_.first(); first < places_; first += kAtOnce * team_.further()) {
      Place known[kAtOnce];  // all loads first, so that they are in flight together
#pragma unroll
      for (unsigned i = 0; i < kAtOnce; ++i) {
        known[i] = place_at<kIsFirst>(first + i * team_.further(), costs);
      }
#pragma unroll
      for (unsigned i = 0; i < kAtOnce; ++i) {
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

  template <bool kIsFirst, class Index>
  __device__ Place place_at(unsigned place, Index costs) const {
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
  __device__ Candidate<Number> relax_place(unsigned place, Place known, Number dual,
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
  __device__ void update(int row, const Step& end) {
    if (team_.thread == 0) dual_of_row_[row] = dual_of_row_[row] + end.length;
    team_.for_own(places_, [&](unsigned place) {
      if (rank_[place] != kVisited && place != end.visited) return;
      const Number nearer = end.length - shortest_[place];
      const int its_row = row_of_place_[place];
      if (its_row >= 0) dual_of_row_[its_row] = dual_of_row_[its_row] + nearer;
      dual_of_place_[place] = dual_of_place_[place] - nearer;
      if (Of::kIsCluster) rank_[place] = 0;
    });
  }

  /// Each row on the path takes the place that it reached; called by one thread.
  __device__ void assign_path(int row, const Step& end) {
    int place = static_cast<int>(end.visited);
    for (int from = -1; from != row;) {
      from = from_row_[place];
      row_of_place_[place] = from;
      const int before = place_of_row_[from];  // of `row` none, and not used
      place_of_row_[from] = place;
      place = before;
    }
  }

  Of& team_;
  const CostsOf costs_;
  const unsigned rows_, places_;
  Number *dual_of_row_, *dual_of_place_, *shortest_;
  int *row_of_place_, *from_row_, *place_of_row_;
  unsigned* rank_;
  int turn_ = 0;
};

/// Bytes of the paths' state: a dual of each, and of a place its distance; 32-bit numbers.
template <class Number>
BOXLOSS_HOST_DEVICE std::int64_t state_bytes(std::int64_t rows, std::int64_t places) {
  constexpr std::int64_t kNumber = sizeof(Number), kInt = sizeof(int);
  return rows * (kNumber + kInt) + places * (2 * kNumber + 3 * kInt);
}
static_assert(2 * sizeof(Extended) + 3 * sizeof(int) <= kAssignState);

/// Solves a task, and writes all of its outputs.
template <class Number, class E, class Of, class CostsOf>
__device__ void assign_task(Of& team, const AssignArgs<E>& a, const AssignTask& task,
                            const CostsOf& costs, std::byte* state) {
  TeamPaths<Number, Of, CostsOf> paths(team, costs, static_cast<unsigned>(task.rows()),
                                       static_cast<unsigned>(task.places()), state);
  paths.solve();
  team.for_own(static_cast<unsigned>(task.places()), [&](unsigned i) {
    const int row = paths.row_of(i), place = static_cast<int>(i);
    if (row >= 0) {
      set_pair(a, task, task.is_wide() ? row : place, task.is_wide() ? place : row);
    } else if (task.is_wide()) {
      set_no_query(a, task, task.first_column + place);
    } else {
      set_no_column(a, task, place);
    }
  });
}

/// The other cases, compiled once for teams of every size: more state than shared memory has room
/// for, a limit where costs are not copied, and numbers that are not finite.
template <class E>
BOXLOSS_DEVICE_CALL void assign_other_task(unsigned threads, const AssignArgs<E>& a,
                                           const AssignTask& task,
                                           const Costs<E, Reading::kByRule>& costs,
                                           std::byte* state, bool are_finite) {
  Team<0> team(threads);
  if (are_finite) {
    assign_task<double>(team, a, task, costs, state);
  } else {
    assign_task<Extended>(team, a, task, costs, state);
  }
}

/// Reads the costs of a task that has columns, and gives whether this thread's numbers are finite.
/// Unless `to` is null, it has room for all, which are copied there, row by row.
template <class E, class Of>
__device__ bool read_costs(const Of& team, const AssignArgs<E>& a, const AssignTask& task,
                           Stored<E>* to) {
  constexpr int kAtOnce = 8;
  const auto queries = static_cast<unsigned>(task.queries);
  const auto columns = static_cast<unsigned>(task.columns);
  const std::int64_t by_query = task.is_wide() ? columns : 1;
  const std::int64_t by_column = task.is_wide() ? 1 : queries;
  const unsigned queries_further = team.further() / columns;
  const unsigned columns_further = team.further() % columns;
  unsigned query = team.first() / columns, column = team.first() % columns;
  bool are_finite = true;
#pragma unroll 1
  while (query < queries) {
    Stored<E> values[kAtOnce];  // all loads first, so that they are in flight together
    std::int64_t places[kAtOnce];
#pragma unroll
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
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const double number = a.rule.number(values[i]);
      are_finite = are_finite && is_finite(number);
      if (to != nullptr && places[i] >= 0) to[places[i]] = static_cast<Stored<E>>(number);
    }
  }
  return are_finite;
}

/// Task i of all, by a team with that much shared memory. Also writes what belongs to no task.
template <class E, class Of>
__device__ void assign_at(Of& team, const AssignArgs<E>& a, std::int64_t i, bool are_offsets_right,
                          std::byte* shared, int shared_bytes, std::byte* workspace,
                          bool& are_all_finite) {
  if (team.thread == 0) are_all_finite = true;
  team.sync();
  const AssignTask task = task_of(a, i, are_offsets_right);
#pragma unroll 1
  for (std::int64_t t = task.columns_begin + team.thread; t < task.columns_end; t += team.size()) {
    const bool is_own = t >= task.first_column && t < task.first_column + task.columns;
    if (!is_own) set_no_query(a, task, t);
  }
  const auto of_group = static_cast<unsigned>(a.queries / a.groups);
  team.for_own(of_group - static_cast<unsigned>(task.queries), [&](unsigned after) {
    set_no_column(a, task, task.queries + static_cast<int>(after));
  });

  const std::int64_t rows = task.rows(), places = task.places();
  const std::int64_t left = shared_bytes - state_bytes<double>(rows, places);
  // Rounded up, since the state begins behind the copies.
  const std::int64_t copied_bytes = (rows * places * sizeof(Stored<E>) + 7) / 8 * 8;
  const bool can_copy =
      !Of::kIsCluster && a.rule.template keeps<Stored<E>>() && copied_bytes <= left;
  auto* const copies = can_copy ? reinterpret_cast<Stored<E>*>(shared) : nullptr;
  if (task.columns > 0 && !read_costs(team, a, task, copies)) are_all_finite = false;
  team.sync();
  const std::int64_t by_row = task.is_wide() ? a.query_stride : a.column_stride;
  const std::int64_t by_place = task.is_wide() ? a.column_stride : a.query_stride;
  const std::int64_t first = first_cost(a, task);
  const bool are_finite = team.all(are_all_finite);
  if constexpr (!Of::kIsCluster) {
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
  if constexpr (Of::kIsCluster) {
    if (are_finite) return assign_task<double>(team, a, task, in_place, shared);
    if (team.first() >= team.size()) return;  // one block is enough for these
  }
  std::byte* const state =
      workspace + first_state(a, task) * static_cast<std::int64_t>(kAssignState);
  assign_other_task(team.size(), a, task, in_place, state, are_finite);
}

/// Threads of a block of teams that have so many.
template <unsigned kThreadsOfTeam>
constexpr unsigned kBlockOfTeams = kThreadsOfTeam < kThreads ? kThreads : kThreadsOfTeam;

/// With more of them there are too few registers.
constexpr int kTeamBlocks = std::min(kFloatBlocks, 3);

/// `shared_bytes` are each team's, and a multiple of 16.
template <class E, unsigned kThreadsOfTeam>
__global__ void __launch_bounds__(kBlockOfTeams<kThreadsOfTeam>,
                                  kThreadsOfTeam == kLanes ? kTeamBlocks : 1)
    assign_tasks(const BOXLOSS_GRID_CONSTANT AssignArgs<E> a, std::byte* const workspace,
                 const int shared_bytes) {
  constexpr unsigned kTeams = kBlockOfTeams<kThreadsOfTeam> / kThreadsOfTeam;
  __shared__ bool are_all_finite[kTeams];
  Team<kThreadsOfTeam> team(kThreadsOfTeam);
  std::byte* const shared =
      dynamic_shared_memory() + team.number * static_cast<unsigned>(shared_bytes);
  const bool are_offsets_right =
      a.offsets.data == nullptr || block_are_in_order(a.offsets, a.images, a.columns);
#pragma unroll 1
  for (std::int64_t i = blockIdx.x * std::int64_t{kTeams} + team.number; i < a.tasks();
       i += gridDim.x * std::int64_t{kTeams}) {
    assign_at(team, a, i, are_offsets_right, shared, shared_bytes, workspace,
              are_all_finite[team.number]);
  }
}

#if defined(BOXLOSS_HAS_CLUSTERS)
/// A cluster for each task.
template <class E, unsigned kThreadsOfBlock>
__global__ void __launch_bounds__(kThreadsOfBlock)
    assign_large_tasks([[maybe_unused]] const BOXLOSS_GRID_CONSTANT AssignArgs<E> a,
                       [[maybe_unused]] std::byte* const workspace,
                       [[maybe_unused]] const int shared_bytes) {
#if __CUDA_ARCH__ >= 900
  __shared__ Mailbox<kThreadsOfBlock> mailbox;
  __shared__ bool are_all_finite;
  ClusterTeam<kThreadsOfBlock> team(mailbox);
  const bool are_offsets_right =
      a.offsets.data == nullptr || block_are_in_order(a.offsets, a.images, a.columns);
  assign_at(team, a, blockIdx.x / kBlocksOfCluster, are_offsets_right, dynamic_shared_memory(),
            shared_bytes, workspace, are_all_finite);
#endif
}
#endif

/// Bytes of a block's shared memory that tasks cannot use: the kernel's own variables, and what
/// CUDA keeps for itself.
constexpr int kBeside = 3072;

/// A team's bytes of shared memory. A block has its part where all blocks are resident at once, but
/// enough for problems of the usual size, and no more than any task needs.
template <class E>
int shared_bytes(const AssignProblem& p, std::int64_t blocks, unsigned teams, int device) {
  constexpr std::int64_t kUsual = 48 << 10;
  const std::int64_t of_group = p.queries / p.groups, columns = p.columns;
  const std::int64_t most = most_shared_bytes(device), at_once = processor_count(device);
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(Stored<E>));
  const std::int64_t state =
      state_bytes<double>(std::min(of_group, columns), std::max(of_group, columns));
  std::int64_t bytes = std::max(most / ceil_div(blocks, at_once), std::min(most, kUsual));
  bytes = (bytes - kBeside) / teams / 16 * 16;
  if (of_group > bytes / columns) return static_cast<int>(bytes);
  const std::int64_t needed = ceil_div(state + of_group * columns * kElement + 8, 16) * 16;
  return static_cast<int>(std::min(bytes, needed));
}

std::size_t workspace_bytes(const AssignProblem& p) {
  const std::int64_t states = states_of_block(p.images, p.queries / p.groups, p.columns);
  return static_cast<std::size_t>(p.layers * p.groups * states) * kAssignState;
}

template <unsigned kThreadsOfTeam, class E>
void launch_by(const AssignProblem& p, const AssignArgs<E>& args, const Execution& execution) {
  constexpr unsigned kBlock = kBlockOfTeams<kThreadsOfTeam>, kTeams = kBlock / kThreadsOfTeam;
  const int device = execution.device_index;
  const std::int64_t blocks = ceil_div(args.tasks(), std::int64_t{kTeams});
  const std::int64_t most_blocks = 64 * processor_count(device);
  const int bytes = shared_bytes<E>(p, blocks, kTeams, device);
  allow_shared(assign_tasks<E, kThreadsOfTeam>, most_shared_bytes(device) - kBeside);
  launch_with_shared(assign_tasks<E, kThreadsOfTeam>, "assign",
                     static_cast<unsigned>(std::min(blocks, most_blocks)), kBlock,
                     static_cast<int>(kTeams) * bytes, static_cast<Stream>(execution.stream), args,
                     static_cast<std::byte*>(execution.workspace), bytes);
}

#if defined(BOXLOSS_HAS_CLUSTERS)
/// Launches a cluster for each task, if all can run at once and have room for `state`.
template <unsigned kThreadsOfBlock, class E>
bool launch_clusters_by(const AssignArgs<E>& args, std::int64_t state, const Execution& execution) {
  const int device = execution.device_index;
  const std::int64_t blocks = args.tasks() * kBlocksOfCluster;
  const int bytes =
      most_shared_bytes(device) - kBeside - static_cast<int>(sizeof(Mailbox<kThreadsOfBlock>));
  if (!has_clusters(device) || blocks > processor_count(device) || state > bytes) return false;
  const auto kernel = assign_large_tasks<E, kThreadsOfBlock>;
  allow_shared(kernel, bytes);
  launch_clusters(kernel, "assign", static_cast<unsigned>(args.tasks()), kThreadsOfBlock, bytes,
                  static_cast<Stream>(execution.stream), args,
                  static_cast<std::byte*>(execution.workspace), bytes);
  return true;
}

/// Fewer threads have fewer messages to wait for; more have fewer places each.
template <class E>
bool launch_clusters_by(const AssignArgs<E>& args, std::int64_t places,
                        const Execution& execution) {
  constexpr std::int64_t kPlacesOfFew = 2560;
  const std::int64_t columns = ceil_div(args.columns, args.images);
  const std::int64_t rows = std::min(args.queries / args.groups, columns);
  const std::int64_t state = state_bytes<double>(rows, places);
  if (places <= kPlacesOfFew) return launch_clusters_by<128>(args, state, execution);
  return launch_clusters_by<512>(args, state, execution);
}
#endif

void assign(const AssignProblem& p, const AssignOutputs& outputs, const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  const Stream stream = static_cast<Stream>(execution.stream);
  const auto fill = [&](void* data, std::size_t bytes) { fill_async(data, 0xff, bytes, stream); };
  dispatch(p, outputs, fill, [&](auto element) {
    using E = decltype(element);
    const AssignArgs<E> args = assign_args<E>(p, outputs);
    const std::int64_t places = std::max(p.queries / p.groups, ceil_div(p.columns, p.images));
    if (places <= 2 * kLanes) return launch_by<kLanes>(p, args, execution);
    if (places <= 2 * kThreads) return launch_by<kThreads>(p, args, execution);
#if defined(BOXLOSS_HAS_CLUSTERS)
    if (launch_clusters_by(args, places, execution)) return;
#endif
    launch_by<kMostThreads>(p, args, execution);
  });
}

}  // namespace boxloss::BOXLOSS_GPU
