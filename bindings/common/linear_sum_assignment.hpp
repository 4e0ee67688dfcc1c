// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "assign.hpp"

namespace boxloss::binding {

/// The assignment of matrices that have nothing to do with images, as frameworks call it: each is a
/// layer of one image.
struct LinearSumAssignment {
  static constexpr char kFunction[] = "linear_sum_assignment",
                        kOperator[] = "boxloss::linear_sum_assignment";
  static constexpr std::array kOutputs = {"column_of_row", "row_of_column"};
  BOXLOSS_ARGUMENTS(BOXLOSS_LINEAR_SUM_ASSIGNMENT_PARAMETERS);

  template <class Size>
  static AssignProblem describe(const Arguments<Described<Size>>& a) {
    AssignProblem p;
    p.cost.dtype = dtype_of(a.cost);
    p.lengths = view_of(a.lengths, kIndexDTypes);
    p.maximize = a.maximize;
    p.cost_limit = a.cost_limit.value_or(p.cost_limit);

    check_shape_is(a.cost, a.cost.rank == 2 || a.cost.rank == 3, "(N, M) or (B, N, M)");
    if (a.lengths) {
      const std::vector<Size> shape =
          a.cost.rank == 3 ? std::vector<Size>{a.cost.size(0), 2} : std::vector<Size>{2};
      check_shape(a.lengths, shape, "of each matrix its rows and columns in use");
    }
    if constexpr (kHasNumbers<Size>) {
      // Of a layer's queries and columns core would say so.
      constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
      const std::int64_t rows = a.cost.size(-2), columns = a.cost.size(-1);
      if (rows > kMost || columns > kMost) {
        throw InvalidArgument(message("cost has ", rows, " rows and ", columns,
                                      " columns; it can have 2^31 - 1 of each"));
      }
      set_cost(p, a.cost);
      p.images = 1;
    }
    return p;
  }

  template <class Size>
  static std::array<Output<Size>, 2> outputs(const Arguments<Described<Size>>& a,
                                             const AssignProblem& p) {
    std::vector<Size> rows, columns;
    if (a.cost.rank == 3) rows = columns = {a.cost.size(0)};
    rows.push_back(a.cost.size(-2));
    columns.push_back(a.cost.size(-1));
    return {{{p.index, rows}, {p.index, columns}}};
  }

  static void check_values(const Arguments<Described<std::int64_t>>& a, const AssignProblem& p) {
    if (a.lengths) check_lengths_values(a.lengths, p.queries, p.columns);
  }

  static constexpr auto workspace_bytes = assign_workspace_bytes;
  static void run(const Implementation& implementation, const AssignProblem& p,
                  const std::array<void*, 2>& outputs, const Execution& execution) {
    assign(implementation, p, {nullptr, nullptr, outputs[0], outputs[1]}, execution);
  }
};

}  // namespace boxloss::binding
