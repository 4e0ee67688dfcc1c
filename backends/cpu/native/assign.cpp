// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cpu/operations.hpp"
#include "cpu/vector/vector_code.hpp"
#include "dispatch/assign.hpp"
#include "math/ceil_div.hpp"

/// The assignment by shortest augmenting paths: a few small tasks at a time for each thread, or one
/// large one. Costs are read where they are if a row's are next to each other, and otherwise
/// copied.
namespace boxloss {
namespace {

/// A task's costs by row; a row's are next to each other.
template <class E>
struct CostRows {
  const E* data;
  std::ptrdiff_t row_stride;
  CostRule rule;

  const E* row(int row) const { return data + row * row_stride; }
};

/// The distance of a visited place: less than no other, and no other is less.
template <class Number>
constexpr Number visited() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if constexpr (std::is_same_v<Number, double>) {
    return kNan;
  } else {
    return {std::numeric_limits<std::int64_t>::min(), kNan};
  }
}

/// The paths of one task. Each row in turn gets a place, the rows before it moving along the
/// shortest path to a free one.
template <class Number, class E>
class Paths {
 public:
  /// `state` has kAssignState bytes for each row and place.
  Paths(const CostRows<E>& costs, int rows, int places, std::byte* state)
      : costs_(costs), rows_(rows), places_(places) {
    const auto take = [&state](auto*& array, int count) {
      array = reinterpret_cast<std::decay_t<decltype(array)>>(state);
      state += static_cast<std::size_t>(count) * sizeof(*array);
    };
    take(dual_of_row_, rows);
    take(lengths_, rows);
    take(dual_of_place_, places);
    take(distances_, places);
    take(row_of_place_, places);
    take(nearest_, places);
    take(remaining_, places);
    take(position_, places);
    take(place_of_row_, rows);
    take(seen_, rows);
    std::fill_n(dual_of_row_, rows, Number{});
    std::fill_n(dual_of_place_, places, Number{});
    std::fill_n(row_of_place_, places, -1);
  }

  void solve() {
    for (int row = 0; row < rows_; ++row) add(row);
  }
  int place_of(int row) const { return place_of_row_[row]; }

 private:
  /// Visits places from the nearest on, until one is free, which the first step gives a finite
  /// distance: its dual and the row's are 0. Sees the row of each, and notes the length so far.
  void add(int row) {
    std::fill_n(distances_, places_, unreached<Number>());
    is_listed_ = false;
    Number length{};
    for (int seen = 0;; ++seen) {
      seen_[seen] = row;
      lengths_[seen] = length;
      const int found = relax(row, length);
      length = nearest_distance_;
      const int place = found == 1 ? nearest_[0] : choose(found, seen);
      row = row_of_place_[place];
      if (row < 0) return take(place, length, seen);
      if (is_listed_) remove(place, seen);
      distances_[place] = visited<Number>();
    }
  }

  /// The distances by way of a row, as VectorCode's. Sets nearest_ and nearest_distance_; returns
  /// how many places are so near.
  int relax(int row, Number length) {
    const E* const costs = costs_.row(row);
    const Number dual = dual_of_row_[row];
    if constexpr (std::is_same_v<Number, double>) {  // a limit is in the copied costs
      return code_.relax(costs, costs_.rule.sign, length, dual, dual_of_place_, places_, distances_,
                         &nearest_distance_, nearest_);
    } else {
      Number least = unreached<Number>();
      for (int i = 0; i < places_; ++i) {
        const double cost = costs_.rule.number(static_cast<double>(costs[i]));
        const Number distance = length + number_of<Number>(cost) - dual - dual_of_place_[i];
        if (distance < distances_[i]) distances_[i] = distance;
        if (distances_[i] < least) least = distances_[i];
      }
      nearest_distance_ = least;
      int found = 0;
      for (int i = 0; i < places_; ++i) {
        if (distances_[i] == least) nearest_[found++] = i;
      }
      return found;
    }
  }

  /// As SciPy does: of equally near places the last free one of its list, or else the first one.
  int choose(int found, int seen) {
    if (!is_listed_) {
      is_listed_ = true;
      for (int k = 0; k < places_; ++k) remaining_[k] = position_[k] = places_ - 1 - k;
      for (int k = 0; k < seen; ++k) remove(place_of_row_[seen_[k + 1]], k);
    }
    int best = nearest_[0];
    for (int i = 1; i < found; ++i) {
      const int place = nearest_[i];
      const bool is_free = row_of_place_[place] < 0, is_best_free = row_of_place_[best] < 0;
      const bool is_later = position_[place] > position_[best];
      if (is_free ? !is_best_free || is_later : !is_best_free && !is_later) best = place;
    }
    return best;
  }

  /// The last of the list, after `before` others are gone, moves to where the place is.
  void remove(int place, int before) {
    const int last = remaining_[places_ - 1 - before];
    position_[last] = position_[place];
    remaining_[position_[last]] = last;
  }

  /// The path back from a place, whose row is the first of those seen to reach it at its distance.
  /// Changes the duals of each visited place, and of its row, by how much nearer it is than the
  /// end; then each row on the path takes the place that it reached.
  void take(int end, Number length, int seen) {
    int* const path = nearest_;
    int steps = 0;
    Number distance = length;
    for (int place = end, k = seen + 1; k != 0;) {
      int from = 0;
      while (from + 1 < k && !(distance_by(from, place) == distance)) ++from;
      path[steps++] = k = from;
      distance = lengths_[k];
      place = place_of_row_[seen_[k]];
    }

    dual_of_row_[seen_[0]] = dual_of_row_[seen_[0]] + length;
    for (int k = 1; k <= seen; ++k) {
      const Number nearer = length - lengths_[k];
      const int row = seen_[k], place = place_of_row_[row];
      dual_of_row_[row] = dual_of_row_[row] + nearer;
      dual_of_place_[place] = dual_of_place_[place] - nearer;
    }
    dual_of_place_[end] = dual_of_place_[end] - (length - length);

    int place = end;
    for (int i = 0; i < steps; ++i) {
      const int row = seen_[path[i]];
      row_of_place_[place] = row;
      std::swap(place_of_row_[row], place);
    }
  }

  /// As a step computes it.
  Number distance_by(int k, int place) const {
    const int row = seen_[k];
    const double cost = costs_.rule.number(static_cast<double>(costs_.row(row)[place]));
    return lengths_[k] + number_of<Number>(cost) - dual_of_row_[row] - dual_of_place_[place];
  }

  const CostRows<E> costs_;
  const int rows_, places_;
  const native::VectorCode<E>& code_ = native::vector_code<E>();
  Number *dual_of_row_, *dual_of_place_;
  Number* distances_;  ///< of places
  Number* lengths_;    ///< to the rows seen
  int *place_of_row_, *row_of_place_;
  Number nearest_distance_{};
  int* nearest_;                ///< places, all equally near
  int* seen_;                   ///< rows, in the order of the search
  int *remaining_, *position_;  ///< SciPy's list of places, and where each is in it,
  bool is_listed_ = false;      ///< made only where a choice needs it
};

/// Copies what is minimized, a row's next to each other. A few queries at a time, so that what is
/// read and what is written stays in the cache, whichever of them is a row.
template <class To, class E>
void copy_numbers(const AssignArgs<E>& a, const AssignTask& task, To* numbers) {
  constexpr int kQueries = 16;
  const std::ptrdiff_t by_query = task.is_wide() ? task.columns : 1;
  const std::ptrdiff_t by_column = task.is_wide() ? 1 : task.queries;
  for (int first = 0; first < task.queries; first += kQueries) {
    const int end = std::min(first + kQueries, task.queries);
    for (int column = 0; column < task.columns; ++column) {
      for (int query = first; query < end; ++query) {
        const double number = a.rule.number(cost_at(a, task, query, column));
        numbers[query * by_query + column * by_column] = static_cast<To>(number);
      }
    }
  }
}

template <class E>
bool are_finite(const CostRows<E>& costs, int rows, int places) {
  E sum = 0;  // stays 0 where all are
  for (int row = 0; row < rows; ++row) {
    for (int place = 0; place < places; ++place) sum += costs.row(row)[place] * E(0);
  }
  return sum == 0;
}

template <class Number, class E, class Of>
void solve_by(const AssignArgs<Of>& a, const AssignTask& task, const CostRows<E>& costs,
              std::byte* state) {
  Paths<Number, E> paths(costs, task.rows(), task.places(), state);
  paths.solve();
  for (int row = 0; row < task.rows(); ++row) {
    set_pair_of_row(a, task, row, paths.place_of(row));
  }
}

template <class E, class Of>
void solve(const AssignArgs<Of>& a, const AssignTask& task, const CostRows<E>& costs,
           std::byte* state) {
  if (are_finite(costs, task.rows(), task.places())) {
    solve_by<double>(a, task, costs, state);
  } else {
    solve_by<Extended>(a, task, costs, state);
  }
}

template <class To, class E>
void solve_copied(const AssignArgs<E>& a, const AssignTask& task, std::byte* copy,
                  std::byte* state) {
  auto* const numbers = reinterpret_cast<To*>(copy);
  copy_numbers(a, task, numbers);
  solve<To>(a, task, {numbers, task.places(), {1, kInfinity, kInfinity}}, state);
}

/// Bytes of a copied number.
template <class E>
std::size_t copied_bytes(const AssignArgs<E>& a) {
  return a.rule.template keeps<Stored<E>>() ? sizeof(Stored<E>) : sizeof(double);
}

/// Writes all of a task's outputs.
template <class E>
void assign(const AssignArgs<E>& a, const AssignTask& task, std::byte* copy, std::byte* state) {
  for (std::int64_t t = task.columns_begin; t < task.columns_end; ++t) set_no_query(a, task, t);
  const auto of_group = static_cast<int>(a.queries / a.groups);
  for (int q = 0; q < of_group; ++q) set_no_column(a, task, q);
  if (task.rows() == 0) return;
  if constexpr (!std::is_same_v<E, Any>) {
    if (place_stride(a, task) == 1 && !a.rule.has_limit()) {
      const E* const own = a.cost.data + first_cost(a, task);
      return solve<E>(a, task, {own, row_stride(a, task), a.rule}, state);
    }
  }
  if (a.rule.template keeps<Stored<E>>()) return solve_copied<Stored<E>>(a, task, copy, state);
  solve_copied<double>(a, task, copy, state);
}

/// Whether it is known that each row's costs are next to each other, so that none are copied.
template <class E>
bool are_read_in_place(const AssignArgs<E>& a) {
  const bool is_wide = a.queries / a.groups <= a.columns;
  const bool is_whole = a.offsets.data == nullptr && a.lengths.data == nullptr;
  return !std::is_same_v<E, Any> && is_whole && !a.rule.has_limit() &&
         (is_wide ? a.column_stride : a.query_stride) == 1;
}

/// What each task has for its copy and its state: a part of the workspace, as long as its image's
/// columns need; or, where all are small, its thread's stack.
struct AssignMemory {
  static constexpr std::size_t kOfStack = 16 << 10;
  std::int64_t of_group, columns, states;  ///< of all images
  std::size_t copied;                      ///< bytes of a number; 0: none is copied

  template <class E>
  explicit AssignMemory(const AssignArgs<E>& a)
      : of_group(a.queries / a.groups),
        columns(a.columns),
        states(states_of_block(a.images, of_group, columns)),
        copied(are_read_in_place(a) ? 0 : copied_bytes(a)) {}

  std::size_t copies_of_block() const {
    return ceil_div(static_cast<std::size_t>(of_group * columns) * copied, kAlignment) * kAlignment;
  }
  std::size_t of_block() const {
    return static_cast<std::size_t>(states) * kAssignState + copies_of_block();
  }
  /// Then no task has more rows, places or costs than all of a block's.
  bool is_on_stack() const {
    return static_cast<std::size_t>(states) <= kOfStack / kAssignState && of_block() <= kOfStack;
  }

 private:
  static constexpr std::size_t kAlignment = alignof(Extended);
};

template <class E>
void run(const AssignArgs<E>& a, void* workspace, const Execution& execution) {
  const bool are_right = are_offsets_right(a);
  const AssignMemory memory(a);
  const auto assign_one = [&](std::int64_t i) {
    const AssignTask task = task_of(a, i, are_right);
    if (memory.is_on_stack()) {
      alignas(Extended) std::byte own[AssignMemory::kOfStack];
      return assign(a, task, own, own + memory.copies_of_block());
    }
    auto* const all = static_cast<std::byte*>(workspace);
    const std::int64_t block = task.layer * a.groups + task.group, first = first_state(a, task);
    std::byte* const copies = all + a.layers * a.groups * memory.states * kAssignState;
    std::byte* const copy = copies + block * memory.copies_of_block() +
                            task.first_column * memory.of_group * memory.copied;
    assign(a, task, copy, all + first * kAssignState);
  };
  // Small tasks several at a time.
  constexpr std::int64_t kEntries = 4096;
  const std::int64_t entries = memory.of_group * ceil_div(a.columns, a.images);
  const std::int64_t at_once = std::max<std::int64_t>(kEntries / entries, 1);
  execution.parallel_for(ceil_div(a.tasks(), at_once), [&](std::int64_t part) {
    const std::int64_t end = std::min(a.tasks(), (part + 1) * at_once);
    for (std::int64_t i = part * at_once; i < end; ++i) assign_one(i);
  });
}

}  // namespace

std::size_t native::Operations::workspace_bytes(const AssignProblem& p) {
  std::size_t bytes = 0;
  const auto fill = [](void*, std::size_t) {};
  dispatch(p, {}, fill, [&](auto element) {
    const AssignMemory memory(assign_args<decltype(element)>(p, {}));
    const auto blocks = static_cast<std::size_t>(p.layers * p.groups);
    bytes = memory.is_on_stack() ? 0 : blocks * memory.of_block();
  });
  return bytes;
}

void native::Operations::assign(const AssignProblem& p, const AssignOutputs& outputs,
                                const Execution& execution) {
  const auto fill = [](void* data, std::size_t bytes) {
    if (data != nullptr) std::memset(data, 0xff, bytes);
  };
  dispatch(p, outputs, fill, [&](auto element) {
    run(assign_args<decltype(element)>(p, outputs), execution.workspace, execution);
  });
}

}  // namespace boxloss
