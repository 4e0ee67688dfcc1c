// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/assign.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <gpu_runtime.hpp>
#include <limits>
#include <random>
#include <vector>

namespace boxloss::gpu_on_host {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

enum class Numbers { kFew, kReal, kNotFinite, kHuge, kHugeNotFinite };

/// What a problem is made of.
struct Shape {
  std::int64_t layers, groups, queries_of_group;
  std::vector<std::int64_t> columns;  ///< of each image
  std::int64_t columns_of_none = 0;   ///< behind the last image's
};

/// A problem in arrays of its own, of cost type E, and index type I.
template <class E, class I>
struct Case {
  std::vector<E> cost;
  std::vector<I> offsets = {0};
  AssignProblem problem;

  Case(const Shape& shape, Numbers numbers, std::mt19937& random) {
    for (const std::int64_t n : shape.columns) offsets.push_back(offsets.back() + I(n));
    AssignProblem& p = problem;
    p.layers = shape.layers;
    p.images = static_cast<std::int64_t>(shape.columns.size());
    p.groups = shape.groups;
    p.queries = shape.groups * shape.queries_of_group;
    p.columns = offsets.back() + shape.columns_of_none;
    p.index = sizeof(I) == 8 ? DType::kI64 : DType::kI32;
    // Queries next to each other, columns next to each other, or neither.
    const unsigned kind = random() % 3;
    const std::int64_t gap = kind == 2 ? 2 : 1;
    p.cost.dtype = sizeof(E) == 8 ? DType::kF64 : DType::kF32;
    p.cost.column_stride = gap * (kind == 1 ? p.queries + 1 : 1);
    p.cost.query_stride = kind == 1 ? 1 : gap * p.columns + 3;
    p.cost.layer_stride = gap * (p.queries + 3) * (p.columns + 3);
    const std::int64_t size = (p.layers - 1) * p.cost.layer_stride +
                              (p.queries - 1) * p.cost.query_stride +
                              (p.columns - 1) * p.cost.column_stride + 1;
    for (std::int64_t i = 0; i < size; ++i) cost.push_back(make(numbers, random));
    p.cost.data = cost.data();
    p.offsets = {offsets.data(), p.index};
  }

  static E make(Numbers numbers, std::mt19937& random) {
    const auto real = static_cast<E>(random()) / E(1 << 30) - E(2);
    const unsigned few = random() % 4, kind = random() % 12;
    switch (numbers) {
      case Numbers::kFew: return E(few);
      case Numbers::kReal: return real;
      case Numbers::kNotFinite: break;
      case Numbers::kHugeNotFinite:
        if (kind < 3) break;
        [[fallthrough]];
      case Numbers::kHuge: return (E(few) - E(1.5)) / E(1.5) * std::numeric_limits<E>::max();
    }
    const double values[] = {kNan, kInfinity, -kInfinity, kInfinity};
    return kind < 4 ? static_cast<E>(values[kind]) : kind < 8 ? E(few) : real;
  }
};

/// The outputs, and behind each as many numbers that must stay.
template <class I>
struct Written {
  std::vector<I> pred_index, target_index, target_of_query;
  bool operator==(const Written& other) const {
    return pred_index == other.pred_index && target_index == other.target_index &&
           target_of_query == other.target_of_query;
  }
};

template <class I>
Written<I> run(const Implementation& implementation, const AssignProblem& p) {
  constexpr I kUntouched = -77;
  const auto pairs = static_cast<std::size_t>(p.layers * p.groups * p.columns);
  const auto queries = static_cast<std::size_t>(p.layers * p.images * p.queries);
  Written<I> written;
  written.pred_index.assign(pairs + 5, kUntouched);
  written.target_index.assign(pairs + 5, kUntouched);
  written.target_of_query.assign(queries + 5, kUntouched);
  Execution execution;
  execution.workspace_bytes = assign_workspace_bytes(implementation, p);
  // Of just that size, with numbers in it that mislead.
  std::vector<double> workspace((execution.workspace_bytes + 7) / 8, 7e300);
  execution.workspace = workspace.data();
  assign(implementation, p,
         {written.pred_index.data(), written.target_index.data(), written.target_of_query.data()},
         execution);
  return written;
}

const Implementation& reference() { return implementation("cpu/reference"); }

const Implementation& subject() {
  static const Implementation implementation = implementations().front();
  return implementation;
}

template <class E, class I>
void require_as_reference(const Shape& shape, Numbers numbers, std::mt19937& random) {
  const Case<E, I> c(shape, numbers, random);
  REQUIRE(run<I>(subject(), c.problem) == run<I>(reference(), c.problem));
}

/// By all types of costs and of indices.
void require_as_reference(const Shape& shape, Numbers numbers, unsigned seed) {
  CAPTURE(shape.layers, shape.groups, shape.queries_of_group, shape.columns, seed);
  set_hardware(seed % 2 == 0 ? 32 : 64, seed);
  std::mt19937 random(seed);
  if (seed % 4 < 2) {
    require_as_reference<float, std::int64_t>(shape, numbers, random);
    require_as_reference<double, std::int32_t>(shape, numbers, random);
  } else {
    require_as_reference<float, std::int32_t>(shape, numbers, random);
    require_as_reference<double, std::int64_t>(shape, numbers, random);
  }
}

using Costs = std::vector<std::vector<double>>;

/// A task by hand: the costs of each query, and its column, which the reference gives it, too.
void require_columns(const Costs& costs, const std::vector<std::int64_t>& columns) {
  const auto queries = static_cast<std::int64_t>(costs.size());
  const auto count = static_cast<std::int64_t>(costs[0].size());
  std::mt19937 random(1);
  Case<double, std::int64_t> c(Shape{1, 1, queries, {count}}, Numbers::kReal, random);
  const CostView& view = c.problem.cost;
  for (std::int64_t q = 0; q < queries; ++q) {
    for (std::int64_t t = 0; t < count; ++t) {
      c.cost.at(q * view.query_stride + t * view.column_stride) = costs[q][t];
    }
  }
  set_hardware(32);
  Written<std::int64_t> written = run<std::int64_t>(subject(), c.problem);
  REQUIRE(written == run<std::int64_t>(reference(), c.problem));
  written.target_of_query.resize(costs.size());
  REQUIRE(written.target_of_query == columns);
}

TEST_CASE("assign: of a thread's places that are equally near a free one is the nearest") {
  Costs costs(2, std::vector<double>(257, 9));  // of columns 0 and 256 one thread takes care
  costs[0][0] = costs[0][1] = costs[1][0] = costs[1][256] = 0;
  require_columns(costs, {0, 256});
}

TEST_CASE("assign: 0 and -0 are the same") {
  require_columns({{0, -0.0}}, {0});
  require_columns({{-0.0, 0}}, {0});
}

TEST_CASE("assign: the number of costs that are not finite falls below 0 where sums overflow") {
  constexpr double most = std::numeric_limits<double>::max();
  require_columns({{kNan, kNan, kNan, kNan, 3},
                   {kNan, kNan, most, kNan, -most},
                   {kNan, kNan, 1, kNan, kNan},
                   {kNan, 1, most, kNan, kNan}},
                  {4, 3, 2, 1});
}

TEST_CASE("assign: small problems, wide and tall, are as the reference has them") {
  const Numbers numbers = GENERATE(Numbers::kFew, Numbers::kReal, Numbers::kNotFinite,
                                   Numbers::kHuge, Numbers::kHugeNotFinite);
  for (unsigned seed = 0; seed < 24; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int end) {
      return static_cast<int>(random() % static_cast<unsigned>(end));
    };
    Shape shape{1 + below(2), 1 + below(3), 1 + below(12), {}, below(3)};
    const int images = 1 + below(3);
    for (int b = 0; b < images; ++b) shape.columns.push_back(below(14));
    if (shape.columns_of_none == 0) shape.columns.push_back(1);
    require_as_reference(shape, numbers, seed);
  }
}

TEST_CASE("assign: more places than threads, and more of all than shared memory has room for") {
  const Numbers numbers = GENERATE(Numbers::kFew, Numbers::kReal, Numbers::kNotFinite);
  const Shape shape = GENERATE(Shape{1, 1, 140, {3, 0, 12, 9}},     // all, or all but costs
                               Shape{2, 1, 150, {8}},               // costs of float32
                               Shape{1, 2, 7, {155, 0, 140}, 2},    // wide
                               Shape{1, 1, 260, {4, 90, 0, 1}, 1},  // not even the state
                               Shape{1, 1, 30, {300, 2}},           //
                               Shape{1, 1, 100, {100}});
  for (unsigned seed = 0; seed < 4; ++seed) require_as_reference(shape, numbers, seed);
}

TEST_CASE("assign: more tasks than blocks") {
  std::mt19937 random(5);
  Shape shape{2, 2, 5, {}};
  for (int b = 0; b < 50; ++b) shape.columns.push_back(static_cast<int>(random() % 8));
  for (unsigned seed = 0; seed < 4; ++seed) {
    require_as_reference(shape, Numbers::kFew, seed);
    require_as_reference(shape, Numbers::kNotFinite, seed);
  }
}

TEST_CASE("assign: offsets that are wrong anywhere give -1 everywhere") {
  std::mt19937 random(1);
  Shape shape{2, 2, 3, std::vector<std::int64_t>(140, 1)};
  Case<float, std::int64_t> c(shape, Numbers::kReal, random);
  const std::vector<std::int64_t> right = c.offsets;
  const auto require_none = [&](const Written<std::int64_t>& written) {
    for (const auto* list :
         {&written.pred_index, &written.target_index, &written.target_of_query}) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        REQUIRE(list->at(i) == (i + 5 < list->size() ? -1 : -77));
      }
    }
  };
  struct Wrong {
    std::size_t at;
    std::int64_t value;
  };
  for (const Wrong wrong : {Wrong{0, -1}, Wrong{140, 141}, Wrong{3, 5}, Wrong{3, 1},
                            Wrong{139, 1LL << 62}, Wrong{130, -(1LL << 62)}, Wrong{140, 138}}) {
    c.offsets = right;
    c.offsets[wrong.at] = wrong.value;
    c.problem.offsets.data = c.offsets.data();
    CAPTURE(wrong.at, wrong.value);
    set_hardware(32, static_cast<unsigned>(wrong.at));
    const Written<std::int64_t> written = run<std::int64_t>(subject(), c.problem);
    require_none(written);
    REQUIRE(written == run<std::int64_t>(reference(), c.problem));
  }
}

TEST_CASE("assign: without pairs all is -1; outputs that are not wanted stay null") {
  set_hardware(32);
  for (const Shape& shape : {Shape{2, 2, 0, {3, 1}}, Shape{2, 1, 4, {0, 0}}, Shape{0, 1, 4, {2}},
                             Shape{1, 1, 4, {}, 3}}) {
    AssignProblem p;
    p.offsets.dtype = DType::kI64;
    p.layers = shape.layers;
    p.groups = shape.groups;
    p.queries = shape.groups * shape.queries_of_group;
    p.images = static_cast<std::int64_t>(shape.columns.size());
    p.columns = shape.columns_of_none;
    for (const std::int64_t n : shape.columns) p.columns += n;
    REQUIRE(run<std::int64_t>(subject(), p) == run<std::int64_t>(reference(), p));
    assign(subject(), p, {}, {});
  }
  std::mt19937 random(2);
  const Case<double, std::int64_t> c(Shape{1, 1, 4, {2, 3}}, Numbers::kReal, random);
  std::vector<std::int64_t> column_of_query(8);
  std::vector<double> workspace(assign_workspace_bytes(subject(), c.problem) / 8);
  Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = workspace.size() * 8;
  assign(subject(), c.problem, {nullptr, nullptr, column_of_query.data()}, execution);
  std::vector<std::int64_t> wanted = run<std::int64_t>(reference(), c.problem).target_of_query;
  wanted.resize(column_of_query.size());
  REQUIRE(column_of_query == wanted);
}

}  // namespace
}  // namespace boxloss::gpu_on_host
