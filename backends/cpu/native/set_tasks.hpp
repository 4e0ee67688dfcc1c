// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "math/ceil_div.hpp"

namespace boxloss::native {

/// How rows are cut into tasks; each belongs to one set.
struct SetTasks {
  static constexpr std::int64_t kLogitsOfTask = 16384;

  SetTasks(std::int64_t rows_of_a_set, std::int64_t logits_of_row)
      : rows_of_set(rows_of_a_set),
        rows(std::max<std::int64_t>(kLogitsOfTask / std::max<std::int64_t>(logits_of_row, 1), 1)),
        of_set(std::max<std::int64_t>(ceil_div(rows_of_set, rows), 1)) {}

  std::int64_t begin(std::int64_t task) const {
    return task / of_set * rows_of_set + task % of_set * rows;
  }
  std::int64_t end(std::int64_t task) const {
    return std::min(begin(task) + rows, (task / of_set + 1) * rows_of_set);
  }

  std::int64_t rows_of_set, rows, of_set;
};

}  // namespace boxloss::native
