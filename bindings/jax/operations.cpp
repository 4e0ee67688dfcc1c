// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/assign.hpp"
#include "../common/box_loss.hpp"
#include "../common/class_loss.hpp"
#include "../common/distribution_loss.hpp"
#include "../common/linear_sum_assignment.hpp"
#include "../common/matching_cost.hpp"
#include "../common/max_iou_match.hpp"
#include "../common/task_aligned_match.hpp"
#include "operation.hpp"

/// The one list of operations. Their handlers follow from their descriptions.
// clang-format off
#define BOXLOSS_JAX_OPERATIONS(use)                                                         \
  use(box_loss, BoxLoss) use(box_loss_backward, BoxLossBackward)                            \
  use(box_losses, BoxLosses) use(box_losses_backward, BoxLossesBackward)                    \
  use(rotated_box_loss, RotatedBoxLoss) use(rotated_box_loss_backward, RotatedBoxLossBackward) \
  use(class_loss, ClassLoss) use(class_loss_backward, ClassLossBackward)                    \
  use(distribution_loss, DistributionLoss)                                                  \
  use(distribution_loss_backward, DistributionLossBackward)                                 \
  use(matching_cost, MatchingCost)                                                          \
  use(assign, Assign) use(linear_sum_assignment, LinearSumAssignment)                       \
  use(max_iou_match, MaxIouMatch) use(task_aligned_match, TaskAlignedMatch)
// clang-format on

#define BOXLOSS_JAX_EXPORT(name, Operation)                                                       \
  BOXLOSS_JAX_TRACE(name, boxloss::jax_binding::OperationOf<boxloss::binding::Operation>::trace); \
  BOXLOSS_JAX_HANDLERS(name, boxloss::jax_binding::OperationOf<boxloss::binding::Operation>::run);
BOXLOSS_JAX_OPERATIONS(BOXLOSS_JAX_EXPORT)

#define BOXLOSS_JAX_NAME(name, Operation) " " #name

/// The handlers that Python registers.
extern "C" __attribute__((visibility("default"))) const char* const boxloss_jax_handlers =
    BOXLOSS_JAX_OPERATIONS(BOXLOSS_JAX_NAME);
