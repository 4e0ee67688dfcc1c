// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/assign.hpp>
#include <boxloss/registry.hpp>
#include <cmath>
#include <limits>

#include "src/checks.hpp"

namespace boxloss {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether nothing is read: there are no pairs.
bool is_empty(const AssignProblem& p) {
  return p.layers == 0 || p.images == 0 || p.queries == 0 || p.columns == 0;
}

void check_shape(const AssignProblem& p) {
  check_size("layers", p.layers, "matrices of cost");
  check_size("images", p.images, "images that share the columns");
  check_size("queries", p.queries, "queries of each image");
  check_size("columns", p.columns, "columns of cost");
  check(p.groups >= 1 && p.queries % p.groups == 0, "groups is ", p.groups,
        "; it must be at least 1, and divide the ", p.queries, " queries");
  const bool is_alone = p.images == 1 && p.offsets.dtype == DType::kNone && p.groups == 1;
  check(p.lengths.dtype == DType::kNone || is_alone,
        "lengths are for one image, without offsets and groups");
  // Rows of the list of queries, and columns of all groups, are numbers of the outputs' dtype; what
  // one problem has are 32-bit numbers.
  constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();
  check(p.queries <= kMost32 && p.columns <= kMost32, "cost has ", p.queries, " queries and ",
        p.columns, " columns; it can have 2^31 - 1 of each");
  const auto fits = [](std::int64_t most, std::int64_t a, std::int64_t b, std::int64_t c) {
    return a == 0 || b == 0 || c == 0 || (a <= most / b && a * b <= most / c);
  };
  // The workspace may have as many, even if one number is all of them.
  check(fits(kMostBoxes, p.layers, p.queries, p.columns), "cost has ", p.layers, " layers of ",
        p.queries, " queries and ", p.columns, " columns, which is more than 64 bits can count");
  const std::int64_t most = p.index == DType::kI32 ? kMost32 : kMostBoxes;
  check(fits(most, p.layers, p.images, p.queries) && fits(most, p.layers, p.groups, p.columns),
        "there are ", p.layers, " layers of ", p.images, " images of ", p.queries, " queries, and ",
        p.groups, " groups of ", p.columns, " columns, which is more than ", name_of(p.index),
        " can count");
}

void check_cost(const AssignProblem& p) {
  const CostView& cost = p.cost;
  check_stride("cost", "layer", cost.layer_stride, p.layers);
  check_stride("cost", "query", cost.query_stride, p.queries);
  check(may_be_stride(cost.layer_stride) && may_be_stride(cost.query_stride) &&
            cost.column_stride >= 0,
        "cost has a negative stride: ", cost.layer_stride, " by layer, ", cost.query_stride,
        " by query, ", cost.column_stride, " by column");
}

}  // namespace

void check_options(const AssignProblem& p) {
  check_enumerator<Unsupported>("cost", "", p.cost.dtype);
  check_indices("offsets", p.offsets);
  check_indices("lengths", p.lengths);
  check_indices("index", p.index);
  check(!std::isnan(p.cost_limit) && p.cost_limit > -kInfinity, "cost_limit is ", p.cost_limit,
        "; it must be a number, or +inf for none");
  check(!p.maximize || p.cost_limit == kInfinity,
        "cost_limit and maximize exclude each other: a limit is for costs");
}

std::size_t assign_workspace_bytes(const Implementation& implementation, const AssignProblem& p) {
  check_served(implementation, "assign", implementation.assign.run != nullptr, p.device);
  check_options(p);
  check_shape(p);
  check_cost(p);
  check_given("offsets", p.offsets, !is_empty(p) && p.images != 1, "(images + 1) integers");
  if (is_empty(p)) return 0;
  AssignProblem marked = p;
  mark_if_given(marked.offsets);
  mark_if_given(marked.lengths);
  return bytes_of(implementation.assign, marked);
}

void assign(const Implementation& implementation, const AssignProblem& p,
            const AssignOutputs& outputs, const Execution& execution) {
  check_call(assign_workspace_bytes, implementation, p, execution);
  check(p.cost.data != nullptr || is_empty(p), "cost.data is null");
  check_aligned("cost", p.cost.data, p.cost.dtype);
  check_pointer("offsets", p.offsets, !is_empty(p));
  check_pointer("lengths", p.lengths, !is_empty(p));
  check_aligned("outputs.pred_index", outputs.pred_index, p.index);
  check_aligned("outputs.query_of_column", outputs.query_of_column, p.index);
  check_aligned("outputs.target_index", outputs.target_index, p.index);
  check_aligned("outputs.target_of_query", outputs.target_of_query, p.index);
  implementation.assign.run(p, outputs, execution);
}

}  // namespace boxloss
