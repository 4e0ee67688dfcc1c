// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/assign.hpp>

#include "../kernels/assign_paths.hpp"
#include "../math/ceil_div.hpp"

namespace boxloss {

template <class E>
AssignArgs<E> assign_args(const AssignProblem& p, const AssignOutputs& outputs) {
  const auto output = [&](void* data) { return IndexOutputs{data, p.index == DType::kI64}; };
  return {elements<E>(p.cost.data, p.cost.dtype),
          p.cost.layer_stride,
          p.cost.query_stride,
          p.cost.column_stride,
          {p.maximize ? -1. : 1., p.cost_limit, stored_as(p.cost.dtype, p.cost_limit)},
          indices(p.offsets),
          indices(p.lengths),
          p.layers,
          p.images,
          p.queries,
          p.columns,
          p.groups,
          output(outputs.pred_index),
          output(outputs.query_of_column),
          output(outputs.target_index),
          output(outputs.target_of_query)};
}

/// Calls launch(E()) for the cost's element type E, which is Any but for float and double; or,
/// where there are no pairs, writes -1 everywhere by fill(pointer, bytes), which sets all bits.
template <class Fill, class Launch>
void dispatch(const AssignProblem& p, const AssignOutputs& outputs, const Fill& fill,
              const Launch& launch) {
  if (p.layers == 0 || p.images == 0 || p.queries == 0 || p.columns == 0) {
    const std::size_t size = size_of(p.index);
    const auto pairs = static_cast<std::size_t>(p.layers * p.groups * p.columns);
    const auto queries = static_cast<std::size_t>(p.layers * p.images * p.queries);
    fill(outputs.pred_index, size * pairs);
    fill(outputs.query_of_column, size * pairs);
    fill(outputs.target_index, size * pairs);
    return fill(outputs.target_of_query, size * queries);
  }
  if (p.cost.dtype == DType::kF64) return launch(double());
  if (p.cost.dtype == DType::kF32) return launch(float());
  launch(Any());
}

/// Bytes of the workspace where the paths' state is if a team has no room for it.
inline std::size_t assign_states_bytes(const AssignProblem& p) {
  const std::int64_t states = states_of_block(p.images, p.queries / p.groups, p.columns);
  return static_cast<std::size_t>(p.layers * p.groups * states) * kAssignState;
}

/// The places of most tasks, if images have about as many columns.
inline std::int64_t usual_places(const AssignProblem& p) {
  return std::max(p.queries / p.groups, ceil_div(p.columns, p.images));
}

/// The bytes that teams with room for `most`, a multiple of 16, should share: no more than any task
/// needs for its state and a copy of its costs.
template <class E>
int assign_shared_bytes(const AssignProblem& p, std::int64_t most) {
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(Stored<E>));
  const std::int64_t of_group = p.queries / p.groups, columns = p.columns;
  if (of_group > most / columns) return static_cast<int>(most);
  const std::int64_t state =
      state_bytes<double>(std::min(of_group, columns), std::max(of_group, columns));
  const std::int64_t needed = ceil_div(state + of_group * columns * kElement + 8, 16) * 16;
  return static_cast<int>(std::min(most, needed));
}

}  // namespace boxloss
