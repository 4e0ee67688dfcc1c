// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/assign.hpp"
#include "../common/box_loss.hpp"
#include "../common/class_loss.hpp"
#include "../common/distribution_loss.hpp"
#include "../common/linear_sum_assignment.hpp"
#include "../common/matching_cost.hpp"
#include "../common/max_iou_match.hpp"
#include "../common/rotated_box_loss.hpp"
#include "../common/task_aligned_match.hpp"
#include "operation.hpp"
#include "pair_loss.hpp"

/// The one list of operations whose handlers follow from their descriptions.
#define BOXLOSS_JAX_OPERATIONS(use)                                                                \
  use(assign, Assign) use(linear_sum_assignment, LinearSumAssignment)                              \
      use(matching_cost, MatchingCost) use(max_iou_match, MaxIouMatch)                             \
          use(task_aligned_match, TaskAlignedMatch) use(class_loss, ClassLoss)                     \
              use(class_loss_backward, ClassLossBackward) use(distribution_loss, DistributionLoss) \
                  use(distribution_loss_backward, DistributionLossBackward)

/// And of losses of pairs, forward and backward.
#define BOXLOSS_JAX_PAIR_LOSSES(use) use(box_loss, BoxLoss) use(rotated_box_loss, RotatedBoxLoss)

#define BOXLOSS_JAX_EXPORT(name, Operation)                                                       \
  BOXLOSS_JAX_TRACE(name, boxloss::jax_binding::OperationOf<boxloss::binding::Operation>::trace); \
  BOXLOSS_JAX_HANDLERS(name, boxloss::jax_binding::OperationOf<boxloss::binding::Operation>::run);

#define BOXLOSS_JAX_EXPORT_PAIR_LOSS(name, Own)                                                 \
  BOXLOSS_JAX_TRACE(name, boxloss::jax_binding::PairLossOf<boxloss::binding::Own>::trace);      \
  BOXLOSS_JAX_HANDLERS(name, boxloss::jax_binding::PairLossOf<boxloss::binding::Own>::forward); \
  BOXLOSS_JAX_HANDLERS(name##_backward,                                                         \
                       boxloss::jax_binding::PairLossOf<boxloss::binding::Own>::backward);

BOXLOSS_JAX_OPERATIONS(BOXLOSS_JAX_EXPORT)
BOXLOSS_JAX_PAIR_LOSSES(BOXLOSS_JAX_EXPORT_PAIR_LOSS)

#define BOXLOSS_JAX_NAME(name, Operation) " " #name
#define BOXLOSS_JAX_NAMES(name, Own) " " #name " " #name "_backward"

/// The handlers that Python registers.
extern "C" __attribute__((visibility("default"))) const char* const boxloss_jax_handlers =
    BOXLOSS_JAX_PAIR_LOSSES(BOXLOSS_JAX_NAMES) BOXLOSS_JAX_OPERATIONS(BOXLOSS_JAX_NAME);
