// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/box_loss.hpp>
#include <cstring>

#include "dtypes/elements.hpp"
#include "lanes/dispatch.hpp"
#include "losses/formulas.hpp"

/// Loops over all slots of a problem, for any formula. The slots are cut into tasks of one fixed
/// size whose partial sums are added in order, so that a result does not depend on the number of
/// threads.
namespace boxloss::native {

constexpr std::int64_t kSlotsPerTask = 8192;

struct Partial {
  double sum = 0;
  std::int64_t count = 0;
};

inline std::int64_t slots_of(const LossProblem& p) { return p.pred.images * p.pred.slots; }

inline std::int64_t tasks_of(const LossProblem& p) {
  return (slots_of(p) + kSlotsPerTask - 1) / kSlotsPerTask;
}

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

/// Calls zero(first, end) for the rows of image b that no counted slot can write.
template <class Pairing, class Zero>
void for_each_uncounted_row_range(const Pairing& pairing, std::int64_t b, const ImageSlots& image,
                                  const Zero& zero) {
  const RowRange rows = pairing.rows(b);
  zero(rows.begin, image.row);
  zero(image.row + image.count, rows.end);
}

template <class P, class T, class F, class C, class Pairing>
Partial forward_run(const F& formula, const LossProblem& p, const Pairing& pairing, C* losses,
                    std::int64_t b, std::int64_t begin, std::int64_t end) {
  const Boxes<P> preds = boxes<P>(p.pred);
  const Boxes<T> targets = boxes<T>(p.target);
  const Elements<Any> weights{p.weight.data, p.weight.dtype};
  const Eps<C> eps = make_eps<C>(p.eps, p.eps_mode);
  const ImageSlots image = pairing.image(b);
  const std::int64_t stop = std::min(end, image.count);
  double sum = 0;
  std::int64_t count = 0;

  for (std::int64_t j = begin; j < stop; ++j) {
    const std::int64_t row = image.row + j;
    C loss = 0;
    if (pairing.counts(row)) {
      const Box<C> target = targets.template get<C>(b, image.target + j);
      if (pairing.counts(target)) {
        const Box<C> pred = preds.template get<C>(b, j);
        loss =
            formula.loss(to_corners(pred, preds.format), to_corners(target, targets.format), eps);
        if (weights.data != nullptr) loss *= weights.get<C>(row);
        ++count;
      }
    }
    if (losses != nullptr) losses[row] = loss;
    sum += static_cast<double>(loss);
  }
  if (losses != nullptr && begin == 0) {
    for_each_uncounted_row_range(pairing, b, image,
                                 [losses](std::int64_t first, std::int64_t last) {
                                   std::fill(losses + first, losses + last, C(0));
                                 });
  }
  return {sum, count};
}

template <class C>
void write_total(const LossProblem& p, const Partial& total, const LossOutputs& outputs) {
  double divisor = 1;
  if (p.normalizer.data != nullptr) {
    divisor = Elements<Any>{p.normalizer.data, p.normalizer.dtype}.get<double>(0);
  } else if (p.reduction == Reduction::kMean) {
    divisor = static_cast<double>(std::max<std::int64_t>(total.count, 1));
  }
  *static_cast<C*>(outputs.scale) = static_cast<C>(1 / divisor);
  if (p.reduction != Reduction::kNone) {
    *static_cast<C*>(outputs.loss) = static_cast<C>(total.sum / divisor);
  }
}

inline std::size_t workspace_bytes(const LossProblem& p) {
  return static_cast<std::size_t>(tasks_of(p)) * sizeof(Partial);
}

inline void forward(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  Partial* const partials = static_cast<Partial*>(execution.workspace);
  dispatch(p, outputs, zero_memory, [&](auto dtypes, const auto& pairing) {
    using D = decltype(dtypes);
    using C = typename D::Compute;
    C* const losses = p.reduction == Reduction::kNone ? static_cast<C*>(outputs.loss) : nullptr;
    with_giou_or_any(p.loss, [&](auto formula) {
      execution.parallel_for(tasks_of(p), [&](std::int64_t task) {
        Partial sum;
        for_each_run(p, task, [&](std::int64_t b, std::int64_t begin, std::int64_t end) {
          const Partial run = forward_run<typename D::Pred, typename D::Target>(
              formula, p, pairing, losses, b, begin, end);
          sum.sum += run.sum;
          sum.count += run.count;
        });
        partials[task] = sum;
      });
    });
    Partial total;
    for (std::int64_t task = 0; task < tasks_of(p); ++task) {
      total.sum += partials[task].sum;
      total.count += partials[task].count;
    }
    write_total<C>(p, total, outputs);
  });
}

/// What backward reads and writes besides the problem.
struct BackwardArrays {
  GradView grad_loss;
  const void* scale;
  LossGradients gradients;
};

template <class P, class T, class C, class F, class Pairing>
void backward_run(const F& formula, const LossProblem& p, const Pairing& pairing,
                  const BackwardArrays& arrays, std::int64_t b, std::int64_t begin,
                  std::int64_t end) {
  const Boxes<P> preds = boxes<P>(p.pred);
  const Boxes<T> targets = boxes<T>(p.target);
  const Elements<Any> weights{p.weight.data, p.weight.dtype};
  const Outputs<P> d_preds = outputs<P>(arrays.gradients.pred, p.pred.dtype);
  const Outputs<Any> d_targets{arrays.gradients.target, p.target.dtype};
  const Outputs<Any> d_weights{arrays.gradients.weight, p.weight.dtype};
  const C* const grad_loss = static_cast<const C*>(arrays.grad_loss.data);
  const C scale = *static_cast<const C*>(arrays.scale);
  const Eps<C> eps = make_eps<C>(p.eps, p.eps_mode);
  const ImageSlots image = pairing.image(b);
  const std::int64_t stop = std::min(end, image.count);

  for (std::int64_t j = begin; j < end; ++j) {
    const std::int64_t row = image.row + j;
    PairGradient<C> d{};
    C weight = 1;
    C by_loss = 0;
    if (j < stop && pairing.counts(row)) {
      const Box<C> target = targets.template get<C>(b, image.target + j);
      if (pairing.counts(target)) {
        const Box<C> pred = preds.template get<C>(b, j);
        d = gradient(formula, to_corners(pred, preds.format), to_corners(target, targets.format),
                     eps);
        by_loss = scale * grad_loss[b * arrays.grad_loss.image_stride +
                                    (image.target + j) * arrays.grad_loss.slot_stride];
        if (weights.data != nullptr) weight = weights.get<C>(row);
      }
    }
    const C by_pair = by_loss * weight;
    if (d_preds.data != nullptr) {
      d_preds.set_box((b * p.pred.slots + j) * 4,
                      from_corners_gradient(by_pair * d.pred, preds.format));
    }
    if (j >= stop) continue;
    if (d_targets.data != nullptr) {
      d_targets.set_box(row * 4, from_corners_gradient(by_pair * d.target, targets.format));
    }
    if (d_weights.data != nullptr) d_weights.set(row, by_loss * d.loss);
  }
  if (begin == 0) {
    for_each_uncounted_row_range(pairing, b, image, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        if (d_targets.data != nullptr) d_targets.set_box(row * 4, Box<C>{});
        if (d_weights.data != nullptr) d_weights.set(row, C(0));
      }
    });
  }
}

inline void backward(const LossProblem& p, const GradView& grad_loss, const void* scale,
                     const LossGradients& gradients, const Execution& execution) {
  const BackwardArrays arrays{grad_loss, scale, gradients};
  dispatch(p, gradients, zero_memory, [&](auto dtypes, const auto& pairing) {
    using D = decltype(dtypes);
    with_giou_or_any(p.loss, [&](auto formula) {
      execution.parallel_for(tasks_of(p), [&](std::int64_t task) {
        for_each_run(p, task, [&](std::int64_t b, std::int64_t begin, std::int64_t end) {
          backward_run<typename D::Pred, typename D::Target, typename D::Compute>(
              formula, p, pairing, arrays, b, begin, end);
        });
      });
    });
  });
}

}  // namespace boxloss::native
