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
void for_each_cost(const AssignProblem& p, const Visit& visit) {
  const RowRange owned = owned_rows(p.offsets, p.images, p.columns);
  for (std::int64_t layer = 0; layer < p.layers; ++layer) {
    for (std::int64_t query = 0; query < p.queries; ++query) {
      for (std::int64_t t = owned.begin; t < owned.end; ++t) visit(layer, query, t);
    }
  }
}

std::int64_t pair_count(const AssignProblem& p) { return p.layers * p.groups * p.columns; }

}  // namespace

HostAssign Assign::make(const AssignCase& c, Random& random) {
  HostAssign host;
  AssignProblem& p = host.problem;
  const auto& [layers, images, queries, columns, groups] = c.shape;
  host.offsets = c.indices.empty() ? random_offsets(c.offsets, images, columns, random)
                                   : exactly(c.indices, c.offsets);
  const Strides strides = strides_of(c.layout, layers, queries, columns);
  p.layers = layers;
  p.images = images;
  p.queries = queries;
  p.columns = columns;
  p.groups = groups;
  p.cost = {lay_out(strides, layers, queries, columns, c.cost, host.cost), c.cost, strides.image,
            strides.slot, strides.value};
  p.offsets = {host.offsets.data(), c.offsets};
  p.index = c.index;

  for (std::int64_t i = 0; i < host.cost.count(); ++i) {
    host.cost.set(i, random.chance(0.5) ? kNan : -largest(c.cost) / 2);
  }
  CostsOf costs(c, random);
  for_each_cost(p, [&](std::int64_t layer, std::int64_t query, std::int64_t column) {
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
                    {"target_of_query", p.index, p.layers * p.images * p.queries}}));
    run.move(p.cost.data, host.cost);
    run.move(p.offsets.data, host.offsets);
    assign(implementation, p, {run.output(0), run.output(1), run.output(2)},
           run.execution(assign_workspace_bytes(implementation, p)));
    return run.results();
  };
  std::vector<Ask> each_alone = {
      {0, Alignment::kElement}, {1, Alignment::kElement}, {2, Alignment::kElement}};
  constexpr std::int64_t kLarge = 5000;  // too much work to do again
  if (host.problem.queries * pair_count(host.problem) >= kLarge) each_alone = {};
  return {call_of(kName, run_as, is_served, equals, each_alone)};
}

}  // namespace boxloss::conformance
