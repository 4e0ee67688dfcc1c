// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/assign.hpp"
#include "../common/class_loss.hpp"
#include "../common/distribution_loss.hpp"
#include "../common/matching_cost.hpp"
#include "../common/max_iou_match.hpp"
#include "../common/task_aligned_match.hpp"
#include "operation.hpp"

/// The one list of operations whose handlers follow from their descriptions.
#define BOXLOSS_JAX_OPERATIONS(use)                                                            \
  use(assign, Assign) use(matching_cost, MatchingCost) use(max_iou_match, MaxIouMatch)         \
      use(task_aligned_match, TaskAlignedMatch) use(class_loss, ClassLoss)                     \
          use(class_loss_backward, ClassLossBackward) use(distribution_loss, DistributionLoss) \
              use(distribution_loss_backward, DistributionLossBackward)

#define BOXLOSS_JAX_EXPORT(name, Operation)                                                       \
  BOXLOSS_JAX_TRACE(name, boxloss::jax_binding::OperationOf<boxloss::binding::Operation>::trace); \
  BOXLOSS_JAX_HANDLERS(name, boxloss::jax_binding::OperationOf<boxloss::binding::Operation>::run);

BOXLOSS_JAX_OPERATIONS(BOXLOSS_JAX_EXPORT)

#define BOXLOSS_JAX_NAME(name, Operation) " " #name

/// The handlers that Python registers.
extern "C" __attribute__((visibility("default"))) const char* const boxloss_jax_handlers =
    "box_loss box_loss_backward" BOXLOSS_JAX_OPERATIONS(BOXLOSS_JAX_NAME);
