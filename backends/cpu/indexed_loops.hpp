// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/native_loops.hpp"
#include "lanes/shared_rows.hpp"

/// The same for pairs by index: sets are cut into tasks, and so are the rows of a gradient that
/// several pairs may share.
namespace boxloss::native {

inline std::int64_t tasks_of(const LossProblem& p) {
  const bool is_indexed = p.pairing.kind == Pairing::Kind::kIndexed;
  return is_indexed ? p.pairing.sets * tasks_for(p.pairing.pairs) : tasks_for(slots_of(p));
}

template <class P, class T, class C>
void forward(const LossProblem& p, const Indexed& pairing, const LossOutputs& outputs,
             const Execution& execution) {
  auto* const partials = static_cast<LossesPartial*>(execution.workspace);
  const IndexedPairs<P, T> pairs = indexed_pairs<P, T>(p, pairing);
  const std::int64_t tasks_of_set = tasks_for(pairing.pairs);
  with_giou_or_any(p.loss, [&](auto formula) {
    const auto args = forward_args<C>(formula, p, outputs);
    execution.parallel_for(pairing.sets * tasks_of_set, [&](std::int64_t task) {
      const std::int64_t set = task / tasks_of_set;
      const std::int64_t begin = (task - set * tasks_of_set) * kSlotsPerTask;
      const std::int64_t end = std::min(begin + kSlotsPerTask, pairing.pairs);
      LossesPartial sum{};
      for (std::int64_t k = begin; k < end; ++k) {
        sum += forward_pair(args, pairs, set * pairing.pairs + k);
      }
      partials[task] = sum;
    });
  });
  write_totals<C>(p, outputs, partials, tasks_of_set);
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
