// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/assign.hpp>

#include "arguments.hpp"

namespace boxloss::binding {

/// Costs (queries, columns) or (layers, queries, columns), and the sizes that they tell.
inline void set_cost(AssignProblem& p, const Array<std::int64_t>& cost) {
  p.layers = leading(cost, 2);
  p.queries = cost.size(-2);
  p.columns = cost.size(-1);
  p.cost.data = cost.data;
  p.cost.layer_stride = stride_of(cost, 3);
  p.cost.query_stride = stride_of(cost, 2);
  p.cost.column_stride = stride_of(cost, 1);
}

/// The assignment as frameworks call it.
struct Assign {
  static constexpr char kFunction[] = "hungarian_match", kOperator[] = "boxloss::assign";
  static constexpr std::array kOutputs = {"pred_index", "target_index", "target_of_query"};
  BOXLOSS_ARGUMENTS(BOXLOSS_ASSIGN_PARAMETERS);

  template <class Size>
  static AssignProblem describe(const Arguments<Described<Size>>& a) {
    AssignProblem p;
    p.cost.dtype = dtype_of(a.cost);
    p.offsets = view_of(a.offsets, kIndexDTypes);
    p.groups = a.groups;

    check_shape_is(a.cost, a.cost.rank == 2 || a.cost.rank == 3,
                   "(queries, T) or (layers, queries, T)");
    check_offsets_shape(a.offsets);
    check(a.groups >= 1 && Compare<Size>::equal(a.cost.size(-2) % a.groups, 0), "groups is ",
          a.groups, "; it must be at least 1, and divide the ", a.cost.size(-2), " queries");
    if constexpr (kHasNumbers<Size>) {
      set_cost(p, a.cost);
      p.images = a.offsets.size(0) - 1;
    }
    return p;
  }

  template <class Size>
  static std::array<Output<Size>, 3> outputs(const Arguments<Described<Size>>& a,
                                             const AssignProblem& p) {
    std::vector<Size> pairs, queries;
    if (a.cost.rank == 3) pairs = queries = {a.cost.size(0)};
    pairs.push_back(a.cost.size(-1) * a.groups);
    queries.insert(queries.end(), {a.offsets.size(0) - 1, a.cost.size(-2)});
    return {{{p.index, pairs}, {p.index, pairs}, {p.index, queries}}};
  }

  static void check_values(const Arguments<Described<std::int64_t>>& a, const AssignProblem& p) {
    check_offsets_values(a.offsets, p.columns);
  }

  static constexpr auto workspace_bytes = assign_workspace_bytes;
  static void run(const Implementation& implementation, const AssignProblem& p,
                  const std::array<void*, 3>& outputs, const Execution& execution) {
    assign(implementation, p, {outputs[0], outputs[1], outputs[2]}, execution);
  }
};

}  // namespace boxloss::binding
