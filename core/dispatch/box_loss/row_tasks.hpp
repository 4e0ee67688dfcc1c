// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>

#include "../../math/ceil_div.hpp"

/// Divides pairs by index into tasks, for hosts, where one thread takes many pairs. No two threads
/// write the same row, and each row's pairs are added in order. A task is a range of the rows of
/// pred's gradient, or of the target's, or of the pairs.
namespace boxloss {

/// Limits the number of tasks for rows, since each reads all indices.
constexpr std::int64_t kRowsPerTask = 1 << 15;
constexpr std::int64_t kMostRowTasks = 16;
constexpr std::int64_t kPairsPerTask = 8192;

/// The number of tasks for each kind of work.
struct BackwardTasks {
  std::int64_t pred, target, pairs;

  std::int64_t count() const { return pred + target + pairs; }
};

inline std::int64_t row_tasks(const void* gradient, const BoxView& list) {
  if (gradient == nullptr || list.rows.data == nullptr) return 0;
  const std::int64_t tasks = ceil_div(list.images * list.slots, kRowsPerTask);
  return tasks < kMostRowTasks ? tasks : kMostRowTasks;
}

inline BackwardTasks backward_tasks(const PairProblem& p, const LossGradients& gradients) {
  const bool own_rows = (gradients.pred != nullptr && p.pred.rows.data == nullptr) ||
                        (gradients.target != nullptr && p.target.rows.data == nullptr) ||
                        gradients.weight != nullptr;
  const std::int64_t pair_tasks = ceil_div(p.pairing.sets * p.pairing.pairs, kPairsPerTask);
  return {row_tasks(gradients.pred, p.pred), row_tasks(gradients.target, p.target),
          own_rows ? pair_tasks : 0};
}

}  // namespace boxloss
