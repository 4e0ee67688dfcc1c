// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/native/box_loss/slots.hpp"
#include "dispatch/box_loss/row_tasks.hpp"
#include "kernels/box_loss/indexed_pairs.hpp"

/// Loops over pairs by index. Sets are divided into tasks, and so are the rows of a gradient that
/// several pairs may share.
namespace boxloss::native {

/// Forward's partial sums: one for each part of each set, or for each task.
inline std::int64_t partials_of(const PairProblem& p) {
  return is_indexed(p) ? p.pairing.sets * tasks_for(p.pairing.pairs) : tasks_for(slots_of(p));
}

/// The first of the `numbers` elements of a row, which is also prefetched, since rows may be
/// anywhere.
inline std::int64_t element_of(const ListedBoxes<Any>& list, int numbers, std::int64_t row) {
  const Boxes<Any>& boxes = list.boxes.boxes;
  const std::int64_t image = list.image_of(row);
  const std::int64_t element = boxes.element_of(image, row - image * list.rows_of_image);
  const std::int64_t size = static_cast<std::int64_t>(size_of(boxes.values.dtype));
  const auto* const address = static_cast<const std::byte*>(boxes.values.data) + element * size;
  __builtin_prefetch(address);
  if (boxes.coordinate_stride == 1) return element;
  for (int i = 1; i < numbers; ++i)
    __builtin_prefetch(address + i * boxes.coordinate_stride * size);
  return element;
}

/// Loops over a problem's pairs, in either pass.
class PairLoop {
 public:
  template <class Problem>
  PairLoop(const Problem& p, const Indexed& pairing)
      : numbers_(Problem::kNumbers),
        pairs_of_set_(pairing.pairs),
        lists_(indexed_pairs<Any, Any>(p, pairing)) {}

  /// Pairs [begin, end), which write rows of their own.
  template <class Tile>
  void run(const RowRange& pairs, Tile& tile) {
    for (std::int64_t k = pairs.begin; k < pairs.end; ++k) {
      const PairRows rows = rows_of(lists_, k);
      if (rows.counts) {
        add(k, rows, rows.pred, tile);
      } else {
        tile.zero_rows({k, k + 1});
        tile.zero_pred_rows({k, k + 1});
      }
    }
    list_.take(tile);
  }

  /// Of `count` pairs, those whose row of pred's or the target's gradient is in the task's range.
  template <class Tile>
  void run_shared(std::int64_t count, bool is_pred, const RowRange& rows, Tile& tile) {
    const auto add_tile = [&](const Pairs& pairs) { tile.add(pairs); };
    for (std::int64_t k = 0; k < count; ++k) {
      const PairRows both = rows_of(lists_, k);
      const std::int64_t row = is_pred ? both.pred : both.target;
      if (row < rows.begin || row >= rows.end) continue;
      if (both.counts) add(k, both, row, add_tile);
    }
    list_.take(add_tile);
  }

 private:
  template <class Use>
  void add(std::int64_t k, const PairRows& rows, std::int64_t gradient_row, Use& use) {
    if (list_.is_full()) list_.take(use);
    list_.add({element_of(lists_.pred, numbers_, rows.pred),
               element_of(lists_.target, numbers_, rows.target), gradient_row, k,
               k / pairs_of_set_});
  }

  int numbers_;  ///< of a box
  std::int64_t pairs_of_set_;
  IndexedPairs<Any, Any> lists_;
  PairList list_;
};

template <class C, class Problem>
void forward(const Problem& p, const Indexed& pairing, const LossOutputs& outputs,
             const Execution& execution) {
  auto* const partials = static_cast<LossesPartial*>(execution.workspace);
  const bool is_reduced = p.reduction != Reduction::kNone;
  const std::int64_t parts_of_set = tasks_for(pairing.pairs);
  const std::int64_t parts = pairing.sets * parts_of_set;
  const std::int64_t parts_of_task = std::max<std::int64_t>(kSlotsPerTask / pairing.pairs, 1);
  execution.parallel_for(ceil_div(parts, parts_of_task), [&](std::int64_t task) {
    PairLoop loop(p, pairing);
    TileForward<C, Problem> tile(p, outputs);
    const std::int64_t end = std::min((task + 1) * parts_of_task, parts);
    for (std::int64_t part = task * parts_of_task; part < end; ++part) {
      const std::int64_t set = part / parts_of_set;
      const std::int64_t first = (part - set * parts_of_set) * kSlotsPerTask;
      const std::int64_t begin = set * pairing.pairs + first;
      tile.sum = {};
      loop.run({begin, begin + std::min(kSlotsPerTask, pairing.pairs - first)}, tile);
      if (is_reduced) partials[part] = tile.sum;
    }
  });
  write_totals<C>(p, outputs, partials, parts_of_set);
}

template <class C, class Problem>
void backward(const Problem& p, const Indexed& pairing, const GradOutputs& grads, const void* scale,
              const LossGradients& gradients, const Execution& execution) {
  const BackwardTasks tasks = backward_tasks(p, gradients);
  const std::int64_t count = pairing.sets * pairing.pairs;
  const LossGradients own = {p.pred.rows.data != nullptr ? nullptr : gradients.pred,
                             p.target.rows.data != nullptr ? nullptr : gradients.target,
                             gradients.weight};
  execution.parallel_for(tasks.count(), [&](std::int64_t task) {
    PairLoop loop(p, pairing);
    if (task < tasks.pred) {
      TileBackward<C, Problem> tile(p, grads, scale, {gradients.pred, nullptr, nullptr});
      const RowRange rows = share_of({0, p.pred.images * p.pred.slots}, task, tasks.pred);
      tile.zero_pred_rows(rows);
      return loop.run_shared(count, true, rows, tile);
    }
    task -= tasks.pred;
    if (task < tasks.target) {
      TileBackward<C, Problem> tile(p, grads, scale, {nullptr, gradients.target, nullptr});
      const RowRange rows = share_of({0, p.target.images * p.target.slots}, task, tasks.target);
      tile.zero_rows(rows);
      return loop.run_shared(count, false, rows, tile);
    }
    TileBackward<C, Problem> tile(p, grads, scale, own);
    loop.run(share_of({0, count}, task - tasks.target, tasks.pairs), tile);
  });
}

}  // namespace boxloss::native
