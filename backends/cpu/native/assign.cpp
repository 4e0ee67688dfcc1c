// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cpu/operations.hpp"
#include "dispatch/assign.hpp"

/// The assignment: a task at a time for each thread, by shortest augmenting paths. The workspace
/// has a matrix for each task, whose rows are next to each other, and what the paths need.
namespace boxloss {
namespace {

/// The paths of one task. Each row in turn gets a place, the rows before it moving along the
/// shortest path to a free one.
template <class Number, class E>
class Paths {
 public:
  /// `state` has kAssignState bytes for each row and place.
  Paths(const E* costs, int rows, int places, std::byte* state)
      : costs_(costs), rows_(rows), places_(places) {
    const auto take = [&state](auto*& array, int count) {
      array = reinterpret_cast<std::decay_t<decltype(array)>>(state);
      state += static_cast<std::size_t>(count) * sizeof(*array);
    };
    take(dual_of_row_, rows);
    take(dual_of_place_, places);
    take(shortest_, places);
    take(row_of_place_, places);
    take(remaining_, places);
    take(from_row_, places);
    take(place_of_row_, rows);
    std::fill_n(dual_of_row_, rows, Number{});
    std::fill_n(dual_of_place_, places, Number{});
    std::fill_n(row_of_place_, places, -1);
    std::fill_n(place_of_row_, rows, -1);
  }

  void solve() {
    for (int row = 0; row < rows_; ++row) add(row);
  }
  int place_of(int row) const { return place_of_row_[row]; }

 private:
  void add(int row) {
    if (takes_free_place(row)) return;
    int left = places_;
    const Number length = search(row, left);
    update(row, left, length);
    // Along the path, back from its end, which was visited last.
    int place = remaining_[left];
    for (int from = -1; from != row;) {
      from = from_row_[place];
      row_of_place_[place] = from;
      std::swap(place_of_row_[from], place);
    }
  }

  /// The most common case: the nearest place is free. This is the first step of search(), without
  /// its list. A nearest place is always found: the distance of a free place is its cost, since its
  /// dual and the row's are 0.
  bool takes_free_place(int row) {
    const E* const costs = costs_of(row);
    Number lowest = unreached<Number>();
    int nearest = -1;
    for (int place = places_ - 1; place >= 0; --place) {
      const Number distance = number_of<Number>(costs[place]) - dual_of_place_[place];
      if (distance < lowest || (distance == lowest && row_of_place_[place] < 0)) {
        lowest = distance;
        nearest = place;
      }
    }
    if (row_of_place_[nearest] >= 0) return false;
    dual_of_row_[row] = lowest;
    row_of_place_[nearest] = row;
    place_of_row_[row] = nearest;
    return true;
  }

  /// Visits places from the nearest on, until one is free; returns its distance. In the list, the
  /// places that were visited follow the `left` remaining ones.
  Number search(int row, int& left) {
    // As in SciPy: places are in this order and, of equally near ones, the last free one is taken.
    for (int k = 0; k < places_; ++k) remaining_[k] = places_ - 1 - k;
    std::fill_n(shortest_, places_, unreached<Number>());
    Number length{};
    while (true) {
      const int nearest = relax(row, left, length);
      const int place = remaining_[nearest];
      length = shortest_[place];
      std::swap(remaining_[nearest], remaining_[--left]);
      if (row_of_place_[place] < 0) return length;
      row = row_of_place_[place];
    }
  }

  /// Gives the nearest of the remaining places.
  int relax(int row, int left, Number length) {
    const E* const costs = costs_of(row);
    const Number dual = dual_of_row_[row];
    Number lowest = unreached<Number>();
    int nearest = -1;
    for (int k = 0; k < left; ++k) {
      const int place = remaining_[k];
      const Number distance =
          length + number_of<Number>(costs[place]) - dual - dual_of_place_[place];
      if (distance < shortest_[place]) {
        shortest_[place] = distance;
        from_row_[place] = row;
      }
      const Number known = shortest_[place];
      if (known < lowest || (known == lowest && row_of_place_[place] < 0)) {
        lowest = known;
        nearest = k;
      }
    }
    return nearest;
  }

  /// Changes the duals of each visited place, and of its row, by how much nearer it is than the
  /// end.
  void update(int row, int left, Number length) {
    dual_of_row_[row] = dual_of_row_[row] + length;
    for (int k = left; k < places_; ++k) {
      const int place = remaining_[k];
      const Number nearer = length - shortest_[place];
      const int its_row = row_of_place_[place];
      if (its_row >= 0) dual_of_row_[its_row] = dual_of_row_[its_row] + nearer;
      dual_of_place_[place] = dual_of_place_[place] - nearer;
    }
  }

  const E* costs_of(int row) const { return costs_ + static_cast<std::ptrdiff_t>(row) * places_; }

  const E* costs_;
  int rows_, places_;
  Number *dual_of_row_, *dual_of_place_, *shortest_;
  int *place_of_row_, *row_of_place_, *remaining_, *from_row_;
};

/// Copies a task's costs; gives whether all are finite. A few queries at a time, so that what is
/// read and what is written stays in the cache, whichever of them is a row.
template <class E>
bool copy_costs(const AssignArgs<E>& a, const AssignTask& task, E* costs) {
  constexpr int kQueries = 16;
  const E* const own = a.cost.data + first_cost(a, task);
  const std::ptrdiff_t by_query = task.is_wide() ? task.columns : 1;
  const std::ptrdiff_t by_column = task.is_wide() ? 1 : task.queries;
  E sum = 0;  // stays 0 where all are
  for (int first = 0; first < task.queries; first += kQueries) {
    const int end = std::min(first + kQueries, task.queries);
    for (int column = 0; column < task.columns; ++column) {
      for (int query = first; query < end; ++query) {
        const E cost = own[query * a.query_stride + column * a.column_stride];
        costs[query * by_query + column * by_column] = cost;
        sum += cost * E(0);
      }
    }
  }
  return sum == 0;
}

template <class Number, class E>
void assign(const AssignArgs<E>& a, const AssignTask& task, const E* costs, std::byte* state) {
  Paths<Number, E> paths(costs, task.rows(), task.places(), state);
  paths.solve();
  for (int row = 0; row < task.rows(); ++row) {
    const int place = paths.place_of(row);
    if (task.is_wide()) {
      set_pair(a, task, row, place);
    } else {
      set_pair(a, task, place, row);
    }
  }
}

template <class E>
void run(const AssignArgs<E>& a, void* workspace, const Execution& execution) {
  const bool are_right = are_in_order(a.offsets, a.images, a.columns);
  const std::int64_t of_group = a.queries / a.groups, blocks = a.layers * a.groups;
  auto* const states = static_cast<std::byte*>(workspace);
  auto* const costs = reinterpret_cast<E*>(
      states + static_cast<std::size_t>(blocks * states_of_block(a.images, of_group, a.columns)) *
                   kAssignState);
  execution.parallel_for(a.tasks(), [&](std::int64_t i) {
    const AssignTask task = task_of(a, i, are_right);
    for (std::int64_t t = task.columns_begin; t < task.columns_end; ++t) set_no_query(a, task, t);
    for (int q = 0; q < task.queries; ++q) set_no_column(a, task, q);
    if (task.rows() == 0) return;
    const std::int64_t block = task.layer * a.groups + task.group;
    E* const own = costs + (block * a.columns + task.first_column) * of_group;
    std::byte* const state = states + static_cast<std::size_t>(first_state(a, task)) * kAssignState;
    if (copy_costs(a, task, own)) {
      assign<double>(a, task, own, state);
    } else {
      assign<Extended>(a, task, own, state);
    }
  });
}

}  // namespace

std::size_t native::workspace_bytes(const AssignProblem& p) {
  const std::int64_t of_group = p.queries / p.groups;
  const std::int64_t states = states_of_block(p.images, of_group, p.columns);
  const std::size_t of_block =
      static_cast<std::size_t>(states) * kAssignState +
      static_cast<std::size_t>(of_group * p.columns) * size_of(p.cost.dtype);
  return static_cast<std::size_t>(p.layers * p.groups) * of_block;
}

void native::assign(const AssignProblem& p, const AssignOutputs& outputs,
                    const Execution& execution) {
  const auto fill = [](void* data, std::size_t bytes) {
    if (data != nullptr) std::memset(data, 0xff, bytes);
  };
  dispatch(p, outputs, fill, [&](auto element) {
    run(assign_args<decltype(element)>(p, outputs), execution.workspace, execution);
  });
}

}  // namespace boxloss
