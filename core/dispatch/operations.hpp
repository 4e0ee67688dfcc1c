// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>
#include <type_traits>

#include "box_loss/with_pairing.hpp"

/// The one list of what the implementations in this tree compute.
namespace boxloss {

template <class Problem, class Outputs>
using RunOf = std::remove_pointer_t<decltype(Functions<Problem, Outputs>::run)>;
template <class Problem>
using BytesOf = std::size_t(const Problem&);

/// Declares the functions of an implementation, as static members of a struct in its namespace.
/// Each is defined in its operation's file.
#define BOXLOSS_OPERATIONS                                                          \
  template <class Problem>                                                          \
  static void forward(const Problem&, const LossOutputs&, const Execution&);        \
  template <class Problem>                                                          \
  static void backward(const Problem&, const GradOutputs&, const void* scale,       \
                       const LossGradients&, const Execution&);                     \
  template <class Problem>                                                          \
  static void matching_cost(const Problem&, float* cost, const Execution&);         \
  static RunOf<AssignProblem, AssignOutputs> assign;                                \
  static RunOf<MaxIouProblem, MaxIouOutputs> max_iou_match;                         \
  static RunOf<TaskAlignedProblem, TaskAlignedOutputs> task_aligned_match;          \
  static RunOf<CollateProblem, CollateOutputs> collate_targets;                     \
  static RunOf<ClassLossProblem, ClassLossOutputs> class_loss;                      \
  static RunOf<ClassLossGradProblem, ClassLossGradOutputs> class_loss_backward;     \
  static RunOf<DistributionLossProblem, DistributionLossOutputs> distribution_loss; \
  static RunOf<DistributionLossGradProblem, DistributionLossGradOutputs> distribution_loss_backward

/// The same of the workspaces that these need.
#define BOXLOSS_WORKSPACES                            \
  static BytesOf<LossProblem> workspace_bytes;        \
  static BytesOf<RotatedLossProblem> workspace_bytes; \
  static BytesOf<AssignProblem> workspace_bytes;      \
  static BytesOf<MaxIouProblem> workspace_bytes;      \
  static BytesOf<TaskAlignedProblem> workspace_bytes; \
  static BytesOf<ClassLossProblem> workspace_bytes;   \
  static BytesOf<DistributionLossProblem> workspace_bytes

/// An implementation that serves all of every operation. Without workspaces `workspace_bytes` is
/// null.
template <class Own>
Implementation implementation(const char* name, int priority) {
  Implementation i;
  i.name = name;
  i.priority = priority;
  i.box_loss = {kLosses, kPairings, kExtras, Own::workspace_bytes, Own::forward, Own::backward};
  i.rotated_box_loss = {kRotatedLosses,       kPairings,    {Extra::kIou},
                        Own::workspace_bytes, Own::forward, Own::backward};
  i.matching_cost = {kLosses, kClassTerms, Own::matching_cost};
  i.rotated_matching_cost = {kRotatedLosses, kClassTerms, Own::matching_cost};
  i.assign = {Own::workspace_bytes, Own::assign};
  i.max_iou_match = i.rotated_max_iou_match = {Own::workspace_bytes, Own::max_iou_match};
  i.task_aligned_match = {Own::workspace_bytes, Own::task_aligned_match};
  i.rotated_task_aligned_match = i.task_aligned_match;
  i.collate_targets = {nullptr, Own::collate_targets};
  i.class_loss = {Own::workspace_bytes, Own::class_loss};
  i.class_loss_backward = {nullptr, Own::class_loss_backward};
  i.distribution_loss = {Own::workspace_bytes, Own::distribution_loss};
  i.distribution_loss_backward = {nullptr, Own::distribution_loss_backward};
  return i;
}

}  // namespace boxloss
