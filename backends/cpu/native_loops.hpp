// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/box_loss.hpp>
#include <cstring>

#include "lanes/dispatch.hpp"
#include "lanes/image_parts.hpp"

/// Loops over all slots of a problem, for any formula. The slots are cut into tasks of one fixed
/// size whose partial sums are added in order, so that a result does not depend on the number of
/// threads.
namespace boxloss::native {

constexpr std::int64_t kSlotsPerTask = 8192;

inline std::int64_t tasks_for(std::int64_t slots) { return ceil_div(slots, kSlotsPerTask); }

inline std::int64_t slots_of(const LossProblem& p) { return p.pred.images * p.pred.slots; }

inline void zero_memory(void* data, std::size_t bytes) {
  if (data != nullptr) std::memset(data, 0, bytes);
}

/// Calls run(image, first slot, end slot) for the part of each image that belongs to a task.
template <class Run>
void for_each_run(const LossProblem& p, std::int64_t task, const Run& run) {
  const std::int64_t slots = p.pred.slots;
  std::int64_t at = task * kSlotsPerTask;
  const std::int64_t end = std::min(at + kSlotsPerTask, slots_of(p));
  while (at < end) {
    const std::int64_t b = at / slots;
    const std::int64_t begin = at - b * slots;
    const std::int64_t stop = std::min(slots, begin + end - at);
    run(b, begin, stop);
    at += stop - begin;
  }
}

/// Calls use(row) for the rows of image b that no counted slot can write.
template <class Pairing, class Use>
void for_each_uncounted_row(const Pairing& pairing, std::int64_t b, const ImageSlots& image,
                            const Use& use) {
  const RowRange rows = pairing.rows(b);
  for (std::int64_t row = rows.begin; row < image.row; ++row) use(row);
  for (std::int64_t row = image.row + image.count; row < rows.end; ++row) use(row);
}

template <class F, class P, class T, class C, class Pairing>
LossesPartial forward_run(const ForwardArgs<F, C>& a, const StridedPair<P, T>& boxes,
                          const Pairing& pairing, std::int64_t b, std::int64_t begin,
                          std::int64_t end) {
  const ImageSlots image = pairing.image(b);
  const std::int64_t stop = std::min(end, image.count);
  LossesPartial sum{};
  for (std::int64_t j = begin; j < stop; ++j) sum += forward_slot(a, boxes, pairing, b, image, j);
  if (begin == 0 && writes_rows(a)) {
    for_each_uncounted_row(pairing, b, image,
                           [&](std::int64_t row) { set_row_losses(a, row, PairLosses<C>{}); });
  }
  return sum;
}

template <class F, class P, class T, class C, class Pairing>
void backward_run(const BackwardArgs<F, P, T, C>& a, const StridedPair<P, T>& boxes,
                  const Pairing& pairing, std::int64_t b, std::int64_t begin, std::int64_t end) {
  const ImageSlots image = pairing.image(b);
  for (std::int64_t j = begin; j < end; ++j) {
    backward_slot(a, boxes, pairing, *a.scale, b, image, j);
  }
  if (begin == 0 && writes_rows(a)) {
    for_each_uncounted_row(pairing, b, image,
                           [&](std::int64_t row) { set_row_gradients(a, row, Gradients<C>{}); });
  }
}

/// Adds up the `parts_of_set` sums that were left for each set.
template <class C>
void write_totals(const LossProblem& p, const LossOutputs& outputs, const LossesPartial* partials,
                  std::int64_t parts_of_set) {
  const ReducedLoss<C> reduced = reduced_loss<C>(p, outputs);
  for (std::int64_t set = 0; set < loss_sets(p); ++set) {
    if (p.reduction == Reduction::kNone) {
      reduced.scale[set] = 1;
      continue;
    }
    LossesPartial total{};
    for (std::int64_t part = 0; part < parts_of_set; ++part) {
      total += partials[set * parts_of_set + part];
    }
    reduced.write(total, set);
  }
}

template <class P, class T, class C, class Pairing>
void forward(const LossProblem& p, const Pairing& pairing, const LossOutputs& outputs,
             const Execution& execution) {
  auto* const partials = static_cast<LossesPartial*>(execution.workspace);
  const StridedPair<P, T> boxes = strided_pair<P, T>(p);
  const std::int64_t tasks = tasks_for(slots_of(p));
  with_giou_or_any(p.loss, [&](auto formula) {
    const auto args = forward_args<C>(formula, p, outputs);
    execution.parallel_for(tasks, [&](std::int64_t task) {
      LossesPartial sum{};
      for_each_run(p, task, [&](std::int64_t b, std::int64_t begin, std::int64_t end) {
        sum += forward_run(args, boxes, pairing, b, begin, end);
      });
      partials[task] = sum;
    });
  });
  write_totals<C>(p, outputs, partials, tasks);
}

template <class P, class T, class C, class Pairing>
void backward(const LossProblem& p, const Pairing& pairing, const GradOutputs& grads,
              const void* scale, const LossGradients& gradients, const Execution& execution) {
  const StridedPair<P, T> boxes = strided_pair<P, T>(p);
  with_giou_or_any(p.loss, [&](auto formula) {
    const auto args = backward_args<P, T, C>(formula, p, grads, scale, gradients);
    execution.parallel_for(tasks_for(slots_of(p)), [&](std::int64_t task) {
      for_each_run(p, task, [&](std::int64_t b, std::int64_t begin, std::int64_t end) {
        backward_run(args, boxes, pairing, b, begin, end);
      });
    });
  });
}

}  // namespace boxloss::native
