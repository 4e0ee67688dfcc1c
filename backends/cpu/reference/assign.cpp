// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "cpu/operations.hpp"
#include "cpu/reference/indices.hpp"
#include "dtypes/elements.hpp"

/// The reference of the assignment: Crouse's algorithm as it is printed, with SciPy's order of
/// places, on numbers that count what is not finite. One task after the other.
namespace boxloss {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// (how many are not finite, the sum of the others), in this order.
using Cost = std::pair<double, double>;

Cost plus(Cost a, Cost b) { return {a.first + b.first, a.second + b.second}; }
Cost minus(Cost a, Cost b) { return {a.first - b.first, a.second - b.second}; }

using Matrix = std::vector<std::vector<Cost>>;

/// For each row its column; no more rows than columns.
std::vector<std::size_t> solve(const Matrix& cost, std::size_t columns) {
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  const Cost infinite = {kInfinity, 0};
  const std::size_t rows = cost.size();
  std::vector<Cost> u(rows), v(columns);
  std::vector<std::size_t> column_of(rows, kNone), row_of(columns, kNone);
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<std::size_t> remaining(columns), from(columns, kNone), seen_rows;
    for (std::size_t k = 0; k < columns; ++k) remaining[k] = columns - 1 - k;
    std::vector<Cost> shortest(columns, infinite);
    std::vector<bool> is_seen(columns, false);
    Cost length = {0, 0};
    std::size_t end = kNone;
    for (std::size_t i = row; end == kNone;) {
      seen_rows.push_back(i);
      std::size_t nearest = 0;
      Cost lowest = infinite;
      for (std::size_t k = 0; k < remaining.size(); ++k) {
        const std::size_t j = remaining[k];
        const Cost distance = minus(minus(plus(length, cost[i][j]), u[i]), v[j]);
        if (!std::isnan(distance.second) && distance < shortest[j]) {
          shortest[j] = distance;
          from[j] = i;
        }
        if (shortest[j] < lowest || (shortest[j] == lowest && row_of[j] == kNone)) {
          lowest = shortest[j];
          nearest = k;
        }
      }
      length = lowest;
      const std::size_t j = remaining[nearest];
      remaining[nearest] = remaining.back();
      remaining.pop_back();
      is_seen[j] = true;
      if (row_of[j] == kNone) {
        end = j;
      } else {
        i = row_of[j];
      }
    }
    u[row] = plus(u[row], length);
    for (const std::size_t i : seen_rows) {
      if (i != row) u[i] = plus(u[i], minus(length, shortest[column_of[i]]));
    }
    for (std::size_t j = 0; j < columns; ++j) {
      if (is_seen[j]) v[j] = minus(v[j], minus(length, shortest[j]));
    }
    for (std::size_t j = end, i = kNone; i != row;) {
      i = from[j];
      row_of[j] = i;
      std::swap(column_of[i], j);
    }
  }
  return column_of;
}

/// Whether each image's columns come behind those of the image before, within the list.
bool are_in_order(const AssignProblem& p) {
  if (p.offsets.data == nullptr) return true;
  std::int64_t last = 0;
  for (std::int64_t b = 0; b <= p.images; ++b) {
    const std::int64_t offset = reference::index_at(p.offsets, b);
    if (offset < last || offset > p.columns) return false;
    last = offset;
  }
  return true;
}

void set(const AssignProblem& p, void* output, std::int64_t i, std::int64_t value) {
  if (output == nullptr) return;
  if (p.index == DType::kI64) {
    static_cast<std::int64_t*>(output)[i] = value;
  } else {
    static_cast<std::int32_t*>(output)[i] = static_cast<std::int32_t>(value);
  }
}

void assign_group(const AssignProblem& p, const AssignOutputs& outputs, std::int64_t layer,
                  std::int64_t image, std::int64_t group) {
  std::int64_t queries = p.queries / p.groups, first = 0, columns = p.columns;
  const std::int64_t first_query = group * queries;
  if (p.offsets.data != nullptr) {
    first = reference::index_at(p.offsets, image);
    columns = reference::index_at(p.offsets, image + 1) - first;
  } else if (p.lengths.data != nullptr) {
    queries = reference::index_at(p.lengths, 2 * layer);
    columns = reference::index_at(p.lengths, 2 * layer + 1);
    if (queries < 0 || queries > p.queries || columns < 0 || columns > p.columns) return;
  }
  const auto cost_at = [&](std::int64_t query, std::int64_t column) {
    const Elements<Any> elements{p.cost.data, p.cost.dtype};
    const double cost = elements.get<double>(layer * p.cost.layer_stride +
                                             (first_query + query) * p.cost.query_stride +
                                             (first + column) * p.cost.column_stride);
    return p.maximize ? -cost : cost;
  };
  const auto is_pair = [&](double cost) {
    const bool is_limited = p.cost_limit < kInfinity;
    const double largest = stored_as(p.cost.dtype, p.cost_limit);
    return is_limited ? std::isfinite(cost) && cost <= largest : cost != kInfinity;
  };
  const bool is_wide = queries <= columns;
  const auto rows = static_cast<std::size_t>(is_wide ? queries : columns);
  const auto places = static_cast<std::size_t>(is_wide ? columns : queries);
  Matrix matrix(rows, std::vector<Cost>(places));
  const auto query_of = [&](std::size_t row, std::size_t place) {
    return static_cast<std::int64_t>(is_wide ? row : place);
  };
  const auto column_of = [&](std::size_t row, std::size_t place) {
    return static_cast<std::int64_t>(is_wide ? place : row);
  };
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t place = 0; place < places; ++place) {
      const double value = cost_at(query_of(row, place), column_of(row, place));
      matrix[row][place] = std::isfinite(value) ? Cost{0, value} : Cost{1, 0};
      if (p.cost_limit < kInfinity && !(std::isfinite(value) && value <= p.cost_limit)) {
        matrix[row][place] = {0, p.cost_limit};
      }
    }
  }
  const std::vector<std::size_t> places_of = solve(matrix, places);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t query = query_of(row, places_of[row]);
    const std::int64_t column = column_of(row, places_of[row]);
    if (!is_pair(cost_at(query, column))) continue;
    const std::int64_t in_image = first_query + query;
    const std::int64_t pred = (layer * p.images + image) * p.queries + in_image;
    const std::int64_t pair = (layer * p.groups + group) * p.columns + first + column;
    set(p, outputs.pred_index, pair, pred);
    set(p, outputs.query_of_column, pair, in_image);
    set(p, outputs.target_index, pair, first + column);
    set(p, outputs.target_of_query, pred, first + column);
  }
}

}  // namespace

void reference::Operations::assign(const AssignProblem& p, const AssignOutputs& outputs,
                                   const Execution&) {
  for (std::int64_t i = 0; i < p.layers * p.groups * p.columns; ++i) {
    set(p, outputs.pred_index, i, -1);
    set(p, outputs.query_of_column, i, -1);
    set(p, outputs.target_index, i, -1);
  }
  for (std::int64_t i = 0; i < p.layers * p.images * p.queries; ++i) {
    set(p, outputs.target_of_query, i, -1);
  }
  if (p.layers == 0 || p.images == 0 || p.queries == 0 || p.columns == 0) return;
  if (!are_in_order(p)) return;
  for (std::int64_t layer = 0; layer < p.layers; ++layer) {
    for (std::int64_t image = 0; image < p.images; ++image) {
      for (std::int64_t group = 0; group < p.groups; ++group) {
        assign_group(p, outputs, layer, image, group);
      }
    }
  }
}

}  // namespace boxloss
