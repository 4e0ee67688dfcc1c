// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/assign.hpp>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../dtypes/elements.hpp"
#include "../math/ceil_div.hpp"
#include "../pairings/indices.hpp"
#include "../pairings/offsets.hpp"

/// Inputs and outputs of the assignment, for every kind of loop, and the numbers that it computes
/// with. A task is one group of one image in one layer. Its matrix has the fewer of queries and
/// columns as rows, and the more as places.
namespace boxloss {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A cost that may be infinite or NaN, or a sum of such costs. What is compared first is how many
/// of them are not finite.
struct Extended {
  std::int64_t nonfinite;
  double finite;
};

BOXLOSS_HOST_DEVICE Extended operator+(Extended a, Extended b) {
  return {a.nonfinite + b.nonfinite, a.finite + b.finite};
}
BOXLOSS_HOST_DEVICE Extended operator-(Extended a, Extended b) {
  return {a.nonfinite - b.nonfinite, a.finite - b.finite};
}
/// False for a sum that has become NaN, as for doubles.
BOXLOSS_HOST_DEVICE bool operator<(Extended a, Extended b) {
  return (a.nonfinite < b.nonfinite && a.finite == a.finite) ||
         (a.nonfinite == b.nonfinite && a.finite < b.finite);
}
BOXLOSS_HOST_DEVICE bool operator==(Extended a, Extended b) {
  return a.nonfinite == b.nonfinite && a.finite == b.finite;
}

BOXLOSS_HOST_DEVICE bool is_finite(double cost) { return cost - cost == 0; }

/// What is minimized, and what makes a pair.
struct CostRule {
  double sign;     ///< of the costs: -1 to maximize
  double limit;    ///< what a row and a column without a pair cost together, or +inf
  double largest;  ///< that makes a pair: the limit as the costs' dtype has it

  BOXLOSS_HOST_DEVICE bool has_limit() const { return limit < kInfinity; }
  /// Whether numbers of such costs, of which the limit may be one, are of the costs' type.
  template <class Cost>
  BOXLOSS_HOST_DEVICE bool keeps() const {
    return static_cast<double>(static_cast<Cost>(limit)) == limit;
  }

  /// The cost as what is minimized. A pair above the limit costs as much as none, so that the least
  /// assignment of all rows has the least of some in it.
  BOXLOSS_HOST_DEVICE double number(double cost) const {
    const double number = sign * cost;
    return has_limit() && !(is_finite(number) && number <= limit) ? limit : number;
  }

  BOXLOSS_HOST_DEVICE bool is_pair(double cost) const {
    const double number = sign * cost;
    return has_limit() ? is_finite(number) && number <= largest : !(number == kInfinity);
  }
};

/// A number as a Number, which is double if all numbers of the task are finite, otherwise Extended.
template <class Number>
BOXLOSS_HOST_DEVICE Number number_of(double cost) {
  if constexpr (std::is_same_v<Number, double>) {
    return cost;
  } else {
    return is_finite(cost) ? Extended{0, cost} : Extended{1, 0};
  }
}

constexpr std::int64_t kMostNonfinite = std::numeric_limits<std::int64_t>::max();

/// The distance of a place that no row has reached.
template <class Number>
BOXLOSS_HOST_DEVICE Number unreached() {
  if constexpr (std::is_same_v<Number, double>) {
    return kInfinity;
  } else {
    return {kMostNonfinite, 0};
  }
}

/// What the paths keep for each row and place of a matrix, in bytes: a dual, a distance, and 32-bit
/// numbers.
constexpr std::size_t kAssignState = 2 * sizeof(Extended) + 4 * sizeof(std::int32_t);
static_assert(kAssignState % alignof(Extended) == 0);

/// E is the cost's element type: float, double or Any.
template <class E>
struct AssignArgs {
  Elements<E> cost;
  std::int64_t layer_stride, query_stride, column_stride;
  CostRule rule;
  Indices offsets, lengths;  ///< of null data: not given
  std::int64_t layers, images, queries, columns, groups;
  IndexOutputs pred_index, query_of_column, target_index, target_of_query;

  BOXLOSS_HOST_DEVICE std::int64_t tasks() const { return layers * images * groups; }
};

/// Where a task's queries and columns are.
struct AssignTask {
  std::int64_t layer, image, group;
  std::int64_t first_query;                 ///< in the image
  std::int64_t first_column;                ///< in the list
  int queries, columns;                     ///< 0 columns where offsets or lengths are wrong
  std::int64_t columns_begin, columns_end;  ///< that the task writes, its own among them

  BOXLOSS_HOST_DEVICE bool is_wide() const { return queries <= columns; }
  BOXLOSS_HOST_DEVICE int rows() const { return is_wide() ? queries : columns; }
  BOXLOSS_HOST_DEVICE int places() const { return is_wide() ? columns : queries; }
};

/// Whether the offsets, if there are any, go up within the columns.
template <class E>
bool are_offsets_right(const AssignArgs<E>& a) {
  return a.offsets.data == nullptr || are_in_order(a.offsets, a.images, a.columns);
}

/// Task i of all: images vary fastest, then groups, then layers. If the offsets are wrong, no task
/// has columns to match, and the tasks of image 0 write -1 for all columns.
template <class E>
BOXLOSS_HOST_DEVICE AssignTask task_of(const AssignArgs<E>& a, std::int64_t i,
                                       bool are_offsets_right) {
  AssignTask task{};
  const std::int64_t of_group = a.queries / a.groups;
  task.image = i % a.images;
  task.group = i / a.images % a.groups;
  task.layer = i / a.images / a.groups;
  task.first_query = task.group * of_group;
  task.queries = static_cast<int>(of_group);
  if (a.offsets.data == nullptr) {
    task.columns_end = a.columns;
    task.columns = static_cast<int>(a.columns);
    if (a.lengths.data != nullptr) {
      const std::int64_t queries = a.lengths[2 * task.layer];
      const std::int64_t columns = a.lengths[2 * task.layer + 1];
      const bool are_right =
          queries >= 0 && queries <= of_group && columns >= 0 && columns <= a.columns;
      task.queries = are_right ? static_cast<int>(queries) : 0;
      task.columns = are_right ? static_cast<int>(columns) : 0;
    }
  } else if (are_offsets_right) {
    const RowRange all = Offsets{a.images, a.columns, a.columns, a.offsets}.rows(task.image);
    task.first_column = a.offsets[task.image];
    task.columns = static_cast<int>(a.offsets[task.image + 1] - task.first_column);
    task.columns_begin = all.begin;
    task.columns_end = all.end;
  } else if (task.image == 0) {
    task.columns_end = a.columns;
  }
  return task;
}

/// Between costs of neighbouring rows, and of neighbouring places.
template <class E>
BOXLOSS_HOST_DEVICE std::int64_t row_stride(const AssignArgs<E>& a, const AssignTask& task) {
  return task.is_wide() ? a.query_stride : a.column_stride;
}
template <class E>
BOXLOSS_HOST_DEVICE std::int64_t place_stride(const AssignArgs<E>& a, const AssignTask& task) {
  return task.is_wide() ? a.column_stride : a.query_stride;
}

/// Where a task's costs begin.
template <class E>
BOXLOSS_HOST_DEVICE std::int64_t first_cost(const AssignArgs<E>& a, const AssignTask& task) {
  return task.layer * a.layer_stride + task.first_query * a.query_stride +
         task.first_column * a.column_stride;
}

/// The type of a copied cost.
template <class E>
using Stored = std::conditional_t<std::is_same_v<E, Any>, double, E>;

/// The cost of a task's query and column.
template <class E>
BOXLOSS_HOST_DEVICE Stored<E> cost_at(const AssignArgs<E>& a, const AssignTask& task, int query,
                                      int column) {
  return a.cost.template get<Stored<E>>(first_cost(a, task) + query * a.query_stride +
                                        column * a.column_stride);
}

/// The number of rows and places that the tasks of one layer and group need together. Each image
/// has a part of them.
BOXLOSS_HOST_DEVICE std::int64_t states_of_block(std::int64_t images, std::int64_t of_group,
                                                 std::int64_t columns) {
  return columns + images * of_group;
}

/// Where a task's part begins, counted in rows and places from the start of the workspace.
template <class E>
BOXLOSS_HOST_DEVICE std::int64_t first_state(const AssignArgs<E>& a, const AssignTask& task) {
  const std::int64_t of_group = a.queries / a.groups;
  return (task.layer * a.groups + task.group) * states_of_block(a.images, of_group, a.columns) +
         task.first_column + task.image * of_group;
}

/// Writes that a column of the list, which may be another image's or no one's, has no query.
template <class E>
BOXLOSS_HOST_DEVICE void set_no_query(const AssignArgs<E>& a, const AssignTask& task,
                                      std::int64_t column) {
  const std::int64_t at = (task.layer * a.groups + task.group) * a.columns + column;
  a.pred_index.set(at, -1);
  a.query_of_column.set(at, -1);
  a.target_index.set(at, -1);
}

template <class E>
BOXLOSS_HOST_DEVICE std::int64_t row_of_query(const AssignArgs<E>& a, const AssignTask& task,
                                              int query) {
  return (task.layer * a.images + task.image) * a.queries + task.first_query + query;
}

/// Writes that a query has no column.
template <class E>
BOXLOSS_HOST_DEVICE void set_no_column(const AssignArgs<E>& a, const AssignTask& task, int query) {
  a.target_of_query.set(row_of_query(a, task, query), -1);
}

/// Writes a pair, if its cost makes one.
template <class E>
BOXLOSS_HOST_DEVICE void set_pair(const AssignArgs<E>& a, const AssignTask& task, int query,
                                  int column) {
  if (!a.rule.is_pair(cost_at(a, task, query, column))) {
    set_no_query(a, task, task.first_column + column);
    return set_no_column(a, task, query);
  }
  const std::int64_t in_list = task.first_column + column, row = row_of_query(a, task, query);
  const std::int64_t at = (task.layer * a.groups + task.group) * a.columns + in_list;
  a.pred_index.set(at, row);
  a.query_of_column.set(at, task.first_query + query);
  a.target_index.set(at, in_list);
  a.target_of_query.set(row, in_list);
}

/// The same, of a row and a place.
template <class E>
BOXLOSS_HOST_DEVICE void set_pair_of_row(const AssignArgs<E>& a, const AssignTask& task, int row,
                                         int place) {
  set_pair(a, task, task.is_wide() ? row : place, task.is_wide() ? place : row);
}

}  // namespace boxloss
