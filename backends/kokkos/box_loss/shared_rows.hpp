// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

#include "dispatch/box_loss/row_tasks.hpp"
#include "kernels/box_loss/indexed_pairs.hpp"
#include "pairings/grid.hpp"

/// Backward for pairs by index on the host.
namespace boxloss::kokkos {

template <int kNumbers, class E>
void zero_rows(const Outputs<E>& gradient, const RowRange& rows) {
  std::memset(gradient.data + kNumbers * rows.begin, 0,
              kNumbers * (rows.end - rows.begin) * sizeof(E));
}

template <int kNumbers>
void zero_rows(const Outputs<Any>& gradient, const RowRange& rows) {
  const std::size_t bytes_of_row = kNumbers * size_of(gradient.dtype);
  std::memset(static_cast<std::byte*>(gradient.data) + rows.begin * bytes_of_row, 0,
              (rows.end - rows.begin) * bytes_of_row);
}

/// Rows [begin, end) of a list's gradient; `box_of(gradients)` is the list's own.
template <class E, class F, class P, class T, class C, class Choose>
void backward_rows(const BackwardArgs<F, P, T, C>& a, const IndexedPairs<P, T>& pairs,
                   const BoxOutputs<E>& gradient, const ListedBoxes<E>& list, const RowRange& rows,
                   const Choose& box_of) {
  const Elements<E> sums = gradient.values.elements();
  using B = BoxOf<F, C>;
  zero_rows<B::kNumbers>(gradient.values, rows);
  for (std::int64_t k = 0; k < pairs.sets * pairs.of_set; ++k) {
    const std::int64_t row = list.row_of(k);
    if (row < rows.begin || row >= rows.end) continue;
    const PairRows both = rows_of(pairs, k);
    if (!both.counts) continue;
    const auto before = sums.template get_box<B>(B::kNumbers * row);
    gradient.set(row, before + box_of(gradients_of(a, pairs, both, k)));
  }
}

template <class F, class P, class T, class C>
void run_backward_task(const BackwardArgs<F, P, T, C>& a, const IndexedPairs<P, T>& pairs,
                       const BackwardTasks& tasks, std::int64_t task) {
  if (task < tasks.pred) {
    return backward_rows(a, pairs, a.d_pred, pairs.pred,
                         share_of({0, pairs.pred.size}, task, tasks.pred),
                         [](const auto& d) { return d.pred; });
  }
  task -= tasks.pred;
  if (task < tasks.target) {
    if constexpr (!std::is_integral_v<T>) {
      backward_rows(a, pairs, a.d_target, pairs.target,
                    share_of({0, pairs.target.size}, task, tasks.target),
                    [](const auto& d) { return d.target; });
    }
    return;
  }
  const RowRange own = share_of({0, pairs.sets * pairs.of_set}, task - tasks.target, tasks.pairs);
  const auto nothing = [](const auto&, std::int64_t, const auto&) {};
  for (std::int64_t k = own.begin; k < own.end; ++k) backward_pair(a, pairs, k, nothing);
}

}  // namespace boxloss::kokkos
