// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/assign.hpp>
#include <boxloss/box_loss.hpp>
#include <boxloss/class_loss.hpp>
#include <boxloss/collate_targets.hpp>
#include <boxloss/distribution_loss.hpp>
#include <boxloss/matching_cost.hpp>
#include <boxloss/max_iou_match.hpp>
#include <boxloss/rotated_box_loss.hpp>
#include <boxloss/task_aligned_match.hpp>

/// The operations, each for the host space and for the device space. The first three, of boxes and
/// of rotated boxes, have a source file for each space, so that two processors share the work.
namespace boxloss::kokkos {

template <class Space, class Problem>
void forward(const Problem&, const LossOutputs&, const Execution&);
template <class Space, class Problem>
void backward(const Problem&, const GradOutputs& grads, const void* scale, const LossGradients&,
              const Execution&);
template <class Space, class Problem>
void matching_cost(const Problem&, float* cost, const Execution&);

std::size_t workspace_bytes(const AssignProblem&);
template <class Space>
void assign(const AssignProblem&, const AssignOutputs&, const Execution&);

std::size_t workspace_bytes(const MaxIouProblem&);
template <class Space>
void max_iou_match(const MaxIouProblem&, const MaxIouOutputs&, const Execution&);

std::size_t workspace_bytes(const TaskAlignedProblem&);
template <class Space>
void task_aligned_match(const TaskAlignedProblem&, const TaskAlignedOutputs&, const Execution&);

std::size_t workspace_bytes(const ClassLossProblem&);
template <class Space>
void class_loss(const ClassLossProblem&, const ClassLossOutputs&, const Execution&);
template <class Space>
void class_loss_backward(const ClassLossGradProblem&, const ClassLossGradOutputs&,
                         const Execution&);

std::size_t workspace_bytes(const DistributionLossProblem&);
template <class Space>
void distribution_loss(const DistributionLossProblem&, const DistributionLossOutputs&,
                       const Execution&);
template <class Space>
void distribution_loss_backward(const DistributionLossGradProblem&,
                                const DistributionLossGradOutputs&, const Execution&);

template <class Space>
void collate_targets(const CollateProblem&, const CollateOutputs&, const Execution&);

}  // namespace boxloss::kokkos
