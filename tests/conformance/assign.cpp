// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "assign.hpp"

#include <limits>

#include "index_arrays.hpp"
#include "placed_boxes.hpp"

namespace boxloss::conformance {
namespace {

double largest(DType dtype) {
  return dtype == DType::kF64 ? std::numeric_limits<double>::max()
                              : std::numeric_limits<float>::max();
}

/// The costs of a case, drawn one after the other.
class CostsOf {
 public:
  CostsOf(const AssignCase& c, Random& random)
      : case_(c),
        random_(random),
        largest_(largest(c.cost)),
        is_nan_(chosen(c.shape.layers * c.shape.queries)),
        is_forbidden_(chosen(c.shape.layers * c.shape.columns)) {
    for (std::int64_t i = 0; i < kKinds * c.shape.columns; ++i) {
      of_kinds_.push_back(static_cast<double>(random.below(20)));
    }
  }

  double at(std::int64_t layer, std::int64_t query, std::int64_t column) {
    const auto row = static_cast<std::size_t>(layer * case_.shape.queries + query);
    const auto place = static_cast<std::size_t>(layer * case_.shape.columns + column);
    const double usual = finite(query, column);
    switch (case_.special) {
      case Special::kNone: return usual;
      case Special::kNanQueries: return is_nan_[row] ? kNan : usual;
      case Special::kForbiddenColumns: return is_forbidden_[place] ? kInfinity : usual;
      case Special::kForbidden: return random_.chance(0.67) ? kInfinity : usual;
      case Special::kAllForbidden: return kInfinity;
      case Special::kMinusInfinity: return random_.chance(0.1) ? -kInfinity : usual;
      case Special::kMixed: return random_.chance(0.4) ? nonfinite() : usual;
      case Special::kAllMixed: return nonfinite();
    }
    return usual;
  }

 private:
  static constexpr std::int64_t kKinds = 3;  ///< of queries that have duplicates

  std::vector<bool> chosen(std::int64_t count) {
    std::vector<bool> flags;
    for (std::int64_t i = 0; i < count; ++i) flags.push_back(random_.chance(0.3));
    return flags;
  }

  double nonfinite() { return random_.pick(std::vector<double>{kNan, kInfinity, -kInfinity}); }

  double finite(std::int64_t query, std::int64_t column) {
    if (!is_floating(case_.cost)) return static_cast<double>(random_.below(20));
    switch (case_.costs) {
      case Costs::kReal: return random_.uniform(-3, 5);
      case Costs::kIntegers: return random_.pick(std::vector<double>{-1, -0.0, 0, 1, 2});
      case Costs::kTenths: return static_cast<double>(random_.below(10)) / 10;
      case Costs::kEqual: return 2.5;
      case Costs::kDuplicates:
        return of_kinds_[static_cast<std::size_t>(query % kKinds * case_.shape.columns + column)];
      case Costs::kHuge: return random_.uniform(-1, 1) * huge();
      case Costs::kOverflow:
        return largest_ * random_.pick(std::vector<double>{-1, -1. / 3, 1. / 3, 1});
    }
    return 0;
  }

  /// Sums, which are in float64, must not overflow.
  double huge() const { return case_.cost == DType::kF64 ? 1e300 : largest_ / 3; }

  const AssignCase& case_;
  Random& random_;
  double largest_;
  std::vector<bool> is_nan_, is_forbidden_;
  std::vector<double> of_kinds_;
};

/// Calls visit(layer, query, column) for each cost that is read.
template <class Visit>
void for_each_cost(const AssignProblem& p, const Array& lengths, const Visit& visit) {
  RowRange owned = {0, p.columns};
  if (p.offsets.data != nullptr) owned = owned_rows(p.offsets, p.images, p.columns);
  for (std::int64_t layer = 0; layer < p.layers; ++layer) {
    std::int64_t queries = p.queries;
    if (p.lengths.data != nullptr) {
      queries = static_cast<std::int64_t>(lengths.get(2 * layer));
      owned.end = static_cast<std::int64_t>(lengths.get(2 * layer + 1));
      if (queries < 0 || queries > p.queries || owned.end < 0 || owned.end > p.columns) continue;
    }
    for (std::int64_t query = 0; query < queries; ++query) {
      for (std::int64_t t = owned.begin; t < owned.end; ++t) visit(layer, query, t);
    }
  }
}

/// Of each layer how many queries and columns it has.
Array random_lengths(const AssignCase& c, Random& random) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t layer = 0; layer < c.shape.layers; ++layer) {
    lengths.push_back(random.below(c.shape.queries + 1));
    lengths.push_back(random.below(c.shape.columns + 1));
  }
  return exactly(lengths, c.offsets);
}

/// No float among real costs. Else some costs are the limit itself, or as their dtype has it: of
/// tenths, more than it.
/// Of tenths of 16 bits one that a float holds, and they do not.
double limit_of(Costs costs, DType dtype) {
  if (costs == Costs::kReal) return 0.7;
  if (costs != Costs::kTenths) return 1;
  return size_of(dtype) < sizeof(float) ? 0.6f : 0.6;
}

std::int64_t pair_count(const AssignProblem& p) { return p.layers * p.groups * p.columns; }

}  // namespace

HostAssign Assign::make(const AssignCase& c, Random& random) {
  HostAssign host;
  AssignProblem& p = host.problem;
  const auto& [layers, images, queries, columns, groups] = c.shape;
  if (c.ragged == Ragged::kOffsets) {
    host.offsets = c.indices.empty() ? random_offsets(c.offsets, images, columns, random)
                                     : exactly(c.indices, c.offsets);
    p.offsets = {host.offsets.data(), c.offsets};
  } else if (c.ragged == Ragged::kLengths) {
    host.lengths = c.indices.empty() ? random_lengths(c, random) : exactly(c.indices, c.offsets);
    p.lengths = {host.lengths.data(), c.offsets};
  }
  p.maximize = c.goal == Goal::kGreatest;
  if (c.goal == Goal::kLimited) p.cost_limit = limit_of(c.costs, c.cost);
  const Strides strides = strides_of(c.layout, layers, queries, columns);
  p.layers = layers;
  p.images = images;
  p.queries = queries;
  p.columns = columns;
  p.groups = groups;
  p.cost = {lay_out(strides, layers, queries, columns, c.cost, host.cost), c.cost, strides.image,
            strides.slot, strides.value};
  p.index = c.index;

  for (std::int64_t i = 0; i < host.cost.count(); ++i) {
    const double of_none = random.chance(0.5) ? kNan : -largest(c.cost) / 2;
    host.cost.set(i, is_floating(c.cost) ? of_none : 0);
  }
  CostsOf costs(c, random);
  for_each_cost(p, host.lengths, [&](std::int64_t layer, std::int64_t query, std::int64_t column) {
    host.cost.set(
        strides.start + layer * strides.image + query * strides.slot + column * strides.value,
        costs.at(layer, query, column));
  });
  return host;
}

std::vector<Call> Assign::calls(const Case&, const Host& host, Random&) {
  const auto run_as = [&host](const auto& implementation, const auto& parallel_for,
                              const Ask& ask) {
    AssignProblem p = host.problem;
    p.device = implementation.device;
    Run run(implementation, parallel_for,
            ask.of({{"pred_index", p.index, pair_count(p)},
                    {"target_index", p.index, pair_count(p)},
                    {"target_of_query", p.index, p.layers * p.images * p.queries},
                    {"query_of_column", p.index, pair_count(p)}}));
    run.move(p.cost.data, host.cost);
    if (p.offsets.data != nullptr) run.move(p.offsets.data, host.offsets);
    if (p.lengths.data != nullptr) run.move(p.lengths.data, host.lengths);
    assign(implementation, p, {run.output(0), run.output(1), run.output(2), run.output(3)},
           run.execution(assign_workspace_bytes(implementation, p)));
    return run.results();
  };
  std::vector<Ask> each_alone = {{0, Alignment::kElement},
                                 {1, Alignment::kElement},
                                 {2, Alignment::kElement},
                                 {3, Alignment::kElement}};
  constexpr std::int64_t kLarge = 5000;  // too much work to do again
  if (host.problem.queries * pair_count(host.problem) >= kLarge) each_alone = {};
  return {call_of(kName, run_as, is_served, equals, each_alone)};
}

}  // namespace boxloss::conformance
