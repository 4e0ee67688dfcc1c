// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/boxloss.hpp>
#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "conformance/random.hpp"

/// Assignments worked out by hand, SciPy's among ties, and small ones against all that there are.
namespace boxloss {
namespace {

using conformance::Random;
using Indices64 = std::vector<std::int64_t>;
using Rows = std::vector<std::vector<double>>;  ///< a query's costs each

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Assigned {
  Indices64 pred_index, target_index, target_of_query;
};

struct Example {
  std::int64_t layers = 1;
  Rows costs;  ///< of all layers, one after the other
  std::vector<std::int32_t> offsets;
  std::int64_t groups = 1;

  Assigned assigned() const {
    std::vector<double> all;
    for (const auto& row : costs) all.insert(all.end(), row.begin(), row.end());
    AssignProblem p;
    p.layers = layers;
    p.images = static_cast<std::int64_t>(offsets.size()) - 1;
    p.queries = static_cast<std::int64_t>(costs.size()) / layers;
    p.columns = static_cast<std::int64_t>(costs[0].size());
    p.groups = groups;
    p.cost = {all.data(), DType::kF64, p.queries * p.columns, p.columns, 1};
    p.offsets = {offsets.data(), DType::kI32};
    const auto pairs = static_cast<std::size_t>(layers * groups * p.columns);
    const auto queries = static_cast<std::size_t>(layers * p.images * p.queries);
    Assigned result{Indices64(pairs, 99), Indices64(pairs, 99), Indices64(queries, 99)};
    assign(implementation("cpu/reference"), p,
           {result.pred_index.data(), result.target_index.data(), result.target_of_query.data()},
           {});
    return result;
  }
};

/// Of one image, which owns all columns.
Indices64 columns_of_queries(const Rows& costs) {
  const std::size_t columns = costs[0].size();
  const Assigned got = Example{1, costs, {0, static_cast<std::int32_t>(columns)}}.assigned();
  Indices64 queries(columns, -1), own(columns, -1);
  for (std::size_t q = 0; q < costs.size(); ++q) {
    const std::int64_t column = got.target_of_query[q];
    if (column < 0) continue;
    queries.at(static_cast<std::size_t>(column)) = static_cast<std::int64_t>(q);
    own.at(static_cast<std::size_t>(column)) = column;
  }
  REQUIRE(got.pred_index == queries);
  REQUIRE(got.target_index == own);
  return got.target_of_query;
}

void require_columns(const Rows& costs, const Indices64& expected) {
  REQUIRE(columns_of_queries(costs) == expected);
}

TEST_CASE("where all costs are equal, query i has column i") {
  require_columns(Rows(4, std::vector<double>(4, 2.5)), {0, 1, 2, 3});
  require_columns(Rows(3, std::vector<double>(5, -1)), {0, 1, 2});
  require_columns(Rows(5, std::vector<double>(3, 0)), {0, 1, 2, -1, -1});
}

// In each of them another order of places, another choice among equally near ones, or another
// place for the last when one was taken would give other columns.
TEST_CASE("among ties the choice is SciPy's") {
  require_columns({{1, 1, 0}, {1, 2, 0}, {2, 1, 0}}, {1, 0, 2});
  require_columns({{2, 2, 1, 2}, {2, 2, 0, 2}, {2, 1, 1, 1}}, {1, 2, 3});
  require_columns({{2, 2, 0}, {2, 1, 2}, {2, 1, 1}, {1, 0, 2}}, {2, 1, -1, 0});
  require_columns({{0, 1, 2, 0}, {0, 0, 0, 0}, {0, 2, 0, 2}, {2, 0, 0, 2}}, {3, 1, 0, 2});
  require_columns({{2, 2, 2}, {1, 2, 2}, {0, 1, 1}, {1, 2, 1}, {1, 2, 1}}, {-1, 1, 0, 2, -1});
  require_columns(
      {{2, 0, 2, 1, 2}, {1, 0, 1, 1, 1}, {1, 0, 1, 2, 1}, {0, 0, 0, 1, 0}, {0, 0, 0, 2, 0}},
      {1, 3, 2, 4, 0});
}

// These are tied but for what the additions round off, in SciPy's order.
TEST_CASE("the choice among tenths is SciPy's") {
  require_columns({{.9, .4, .6, .8}, {.1, 0, .6, .5}, {.4, .5, .5, .3}, {.4, .3, .5, .3}},
                  {2, 1, 0, 3});
  require_columns(
      {{.9, .3, .8, .3, .4}, {.4, .2, .6, .3, .4}, {.3, 0, .4, 0, .1}, {.7, .2, .6, 0, .6}},
      {4, 0, 1, 3});
}

TEST_CASE("layers, images and groups are assigned by themselves") {
  Example example;
  example.layers = 2;
  example.groups = 2;
  example.offsets = {0, 1, 3};
  constexpr double kUnread = -1000;
  example.costs = {{5, 1, 2, kUnread},  //
                   {4, 2, 1, kUnread},
                   {1, 9, 3, kUnread},
                   {2, 4, 9, kUnread}};
  for (std::size_t q = 0; q < 4; ++q) {  // in the second layer the dearest are the cheapest
    std::vector<double> row = example.costs[q];
    for (std::size_t t = 0; t < 3; ++t) row[t] = 10 - row[t];
    example.costs.push_back(row);
  }
  const Assigned got = example.assigned();
  REQUIRE(got.pred_index == Indices64{1, 4, 5, -1, 2, 7, 6, -1,  //
                                      8, 13, 12, -1, 11, 14, 15, -1});
  REQUIRE(got.target_index == Indices64{0, 1, 2, -1, 0, 1, 2, -1,  //
                                        0, 1, 2, -1, 0, 1, 2, -1});
  REQUIRE(got.target_of_query == Indices64{-1, 0, 0, -1, 1, 2, 2, 1,  //
                                           0, -1, -1, 0, 2, 1, 1, 2});
}

/// Against all ways to give each query a column of its own, or none where columns are fewer. The
/// least have the fewest costs that are not finite, and of these the least sum, which is exact.
void require_least(const Rows& costs) {
  const Indices64 got = columns_of_queries(costs);
  const std::size_t queries = costs.size(), columns = costs[0].size();
  std::vector<std::size_t> order(std::max(queries, columns));  // that column, if there is one
  std::iota(order.begin(), order.end(), 0);
  std::pair<int, double> least = {99, 0};
  bool is_among_least = false;
  do {
    std::pair<int, double> total = {0, 0};
    Indices64 matches(queries, -1);
    for (std::size_t q = 0; q < queries; ++q) {
      if (order[q] >= columns) continue;
      const double cost = costs[q][order[q]];
      std::isfinite(cost) ? total.second += cost : total.first += 1;
      if (cost != kInfinity) matches[q] = static_cast<std::int64_t>(order[q]);
    }
    if (least < total) continue;
    is_among_least = (total == least && is_among_least) || matches == got;
    least = total;
  } while (std::next_permutation(order.begin(), order.end()));
  CAPTURE(costs, got, least.first, least.second);
  REQUIRE(is_among_least);
}

using Integers = std::vector<std::int32_t>;

struct Pairs {
  Indices64 column_of_row, row_of_column;

  friend bool operator==(const Pairs& a, const Pairs& b) {
    return a.column_of_row == b.column_of_row && a.row_of_column == b.row_of_column;
  }
};

/// Of problem p of these costs, whose sizes are set.
template <class Cost>
Pairs pairs_of(AssignProblem p, const std::vector<Cost>& costs) {
  constexpr DType dtype = std::is_same_v<Cost, double>  ? DType::kF64
                          : std::is_same_v<Cost, float> ? DType::kF32
                                                        : DType::kI32;
  p.images = 1;
  p.cost = {costs.data(), dtype, p.queries * p.columns, p.columns, 1};
  Pairs pairs{Indices64(static_cast<std::size_t>(p.layers * p.queries), 99),
              Indices64(static_cast<std::size_t>(p.layers * p.columns), 99)};
  AssignOutputs outputs;
  outputs.target_of_query = pairs.column_of_row.data();
  outputs.query_of_column = pairs.row_of_column.data();
  assign(implementation("cpu/reference"), p, outputs, {});
  return pairs;
}

TEST_CASE("no assignment of a small task is less than the one that is found") {
  Random random(Catch::getSeed());
  const std::vector<std::vector<double>> kinds = {
      {kInfinity}, {kNan}, {-kInfinity}, {kNan, kInfinity, -kInfinity}};
  for (int i = 0; i < 3000; ++i) {
    Rows costs(static_cast<std::size_t>(1 + random.below(6)));
    const auto columns = static_cast<std::size_t>(1 + random.below(6));
    const std::int64_t values = random.pick(std::vector<std::int64_t>{1, 3, 10, 100000});
    const double chance = random.pick(std::vector<double>{0, 0, 0.2, 0.5, 0.8, 1});
    const std::vector<double> special = random.pick(kinds);
    for (auto& row : costs) {
      const bool is_spoilt = chance > 0 && random.chance(0.1);
      for (std::size_t t = 0; t < columns; ++t) {
        const bool is_finite = !is_spoilt && !random.chance(chance);
        row.push_back(is_finite ? static_cast<double>(random.below(values)) / 8 - 4
                                : random.pick(special));
      }
    }
    INFO("task " << i);
    require_least(costs);
    AssignProblem greatest;
    greatest.queries = static_cast<std::int64_t>(costs.size());
    greatest.columns = static_cast<std::int64_t>(columns);
    greatest.maximize = true;
    std::vector<double> negative;
    for (const auto& row : costs) {
      for (const double cost : row) negative.push_back(-cost);
    }
    REQUIRE(pairs_of(greatest, negative).column_of_row == columns_of_queries(costs));
  }
}

// --- Matrices alone, by row and by column ---

TEST_CASE("matrices of integers, of any length, the least and the greatest") {
  const Integers costs = {1, 2, 0, 0, 5, 0,  //
                          4, 1, 9, 2, 2, 9};
  const Integers lengths = {2, 2, 1, 2};
  AssignProblem p;
  p.layers = p.queries = 2;
  p.columns = 3;
  p.lengths = {lengths.data(), DType::kI32};
  REQUIRE(pairs_of(p, costs) == Pairs{{1, 0, 1, -1}, {1, 0, -1, -1, 0, -1}});
  p.maximize = true;
  REQUIRE(pairs_of(p, costs) == Pairs{{0, 1, 0, -1}, {0, 1, -1, 0, -1, -1}});
  p.lengths = {};
  REQUIRE(pairs_of(p, costs) == Pairs{{0, 1, 0, 2}, {0, 1, -1, 0, -1, 1}});
}

/// The least of what remains from a row on: twice the pairs' costs, and the limit for each row and
/// column without one.
double least_limited(const AssignProblem& p, const std::vector<double>& costs, std::int64_t row,
                     Indices64 used) {
  const double limit = p.cost_limit;
  if (row == p.queries) {
    return limit * static_cast<double>(std::count(used.begin(), used.end(), 0));
  }
  double least = limit + least_limited(p, costs, row + 1, used);
  for (std::size_t t = 0; t < used.size(); ++t) {
    const double cost = costs[static_cast<std::size_t>(row * p.columns) + t];
    if (used[t] != 0 || !std::isfinite(cost) || cost > limit) continue;
    used[t] = 1;
    least = std::min(least, 2 * cost + least_limited(p, costs, row + 1, used));
    used[t] = 0;
  }
  return least;
}

TEST_CASE("up to a limit, no assignment of some rows is less than the one that is found") {
  Random random(Catch::getSeed());
  for (int i = 0; i < 1000; ++i) {
    AssignProblem p;
    p.queries = 1 + random.below(5);
    p.columns = 1 + random.below(5);
    p.cost_limit = static_cast<double>(random.below(8)) - 2;
    std::vector<double> costs;
    for (std::int64_t k = 0; k < p.queries * p.columns; ++k) {
      costs.push_back(random.chance(0.2)
                          ? random.pick(std::vector<double>{kNan, kInfinity, -kInfinity})
                          : static_cast<double>(random.below(10)) - 3);
    }
    const Pairs got = pairs_of(p, costs);
    double total = 0;
    for (std::size_t row = 0; row < got.column_of_row.size(); ++row) {
      const std::int64_t column = got.column_of_row[row];
      if (column < 0) continue;
      const double cost =
          costs[row * static_cast<std::size_t>(p.columns) + static_cast<std::size_t>(column)];
      REQUIRE((std::isfinite(cost) && cost <= p.cost_limit));
      REQUIRE(got.row_of_column[static_cast<std::size_t>(column)] ==
              static_cast<std::int64_t>(row));
      total += 2 * cost;
    }
    for (const Indices64& each : {got.column_of_row, got.row_of_column}) {
      total += p.cost_limit * static_cast<double>(std::count(each.begin(), each.end(), -1));
    }
    CAPTURE(costs, p.cost_limit, p.queries, p.columns);
    const Indices64 used(static_cast<std::size_t>(p.columns), 0);
    REQUIRE(total == least_limited(p, costs, 0, used));
  }
}

TEST_CASE("a limit between two floats is not rounded") {
  AssignProblem p;
  p.queries = p.columns = 2;
  p.cost_limit = 0.7;
  // 0.6F and 0.09999997F add up to less than the limit, and to more than 0.7F.
  const std::vector<float> costs = {0, 0.6F, 0.09999997F, 5};
  REQUIRE(pairs_of(p, costs) == Pairs{{1, 0}, {1, 0}});
}

}  // namespace
}  // namespace boxloss
