// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/native_loops.hpp"
#include "lanes/shared_rows.hpp"

/// The same for pairs by index: sets are cut into tasks, and so are the rows of a gradient that
/// several pairs may share.
namespace boxloss::native {

/// Sums that forward leaves: one for each part of each set, or for each task.
inline std::int64_t partials_of(const LossProblem& p) {
  const bool is_indexed = p.pairing.kind == Pairing::Kind::kIndexed;
  return is_indexed ? p.pairing.sets * tasks_for(p.pairing.pairs) : tasks_for(slots_of(p));
}

/// Pairs ahead of the one that is computed: their boxes lie anywhere.
constexpr std::int64_t kPrefetched = 16;

template <class P, class T, class C>
void forward(const LossProblem& p, const Indexed& pairing, const LossOutputs& outputs,
             const Execution& execution) {
  auto* const partials = static_cast<LossesPartial*>(execution.workspace);
  const IndexedPairs<P, T> pairs = indexed_pairs<P, T>(p, pairing);
  const std::int64_t parts_of_set = tasks_for(pairing.pairs);
  const std::int64_t parts = pairing.sets * parts_of_set;
  const std::int64_t parts_of_task = std::max<std::int64_t>(kSlotsPerTask / pairing.pairs, 1);
  with_giou_or_any(p.loss, [&](auto formula) {
    const auto args = forward_args<C>(formula, p, outputs);
    const auto run_part = [&](std::int64_t part) {
      const std::int64_t set = part / parts_of_set;
      const std::int64_t first = (part - set * parts_of_set) * kSlotsPerTask;
      const std::int64_t begin = set * pairing.pairs + first;
      const std::int64_t end = begin + std::min(kSlotsPerTask, pairing.pairs - first);
      LossesPartial sum{};
      for (std::int64_t k = begin; k < end; ++k) {
        const std::int64_t ahead = std::min(k + kPrefetched, end - 1);
        pairs.pred.prefetch(ahead);
        pairs.target.prefetch(ahead);
        sum += forward_pair(args, pairs, k);
      }
      partials[part] = sum;
    };
    execution.parallel_for(ceil_div(parts, parts_of_task), [&](std::int64_t task) {
      const std::int64_t end = std::min((task + 1) * parts_of_task, parts);
      for (std::int64_t part = task * parts_of_task; part < end; ++part) run_part(part);
    });
  });
  write_totals<C>(p, outputs, partials, parts_of_set);
}

template <class P, class T, class C>
void backward(const LossProblem& p, const Indexed& pairing, const GradOutputs& grads,
              const void* scale, const LossGradients& gradients, const Execution& execution) {
  const IndexedPairs<P, T> pairs = indexed_pairs<P, T>(p, pairing);
  with_giou_or_any(p.loss, [&](auto formula) {
    const auto args = backward_args<P, T, C>(formula, p, grads, scale, gradients);
    const BackwardTasks tasks = backward_tasks(args, pairs);
    execution.parallel_for(tasks.count(),
                           [&](std::int64_t task) { run_backward_task(args, pairs, tasks, task); });
  });
}

}  // namespace boxloss::native
