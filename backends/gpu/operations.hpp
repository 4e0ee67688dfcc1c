// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

#include <boxloss/assign.hpp>
#include <boxloss/box_loss.hpp>
#include <boxloss/class_loss.hpp>
#include <boxloss/collate_targets.hpp>
#include <boxloss/distribution_loss.hpp>
#include <boxloss/matching_cost.hpp>
#include <boxloss/max_iou_match.hpp>
#include <boxloss/rotated_box_loss.hpp>
#include <boxloss/task_aligned_match.hpp>

/// The two passes of box losses, and the other operations, in separate translation units so that
/// processors share the work.
namespace boxloss::BOXLOSS_GPU {

void forward(const LossProblem&, const LossOutputs&, const Execution&);
void backward(const LossProblem&, const GradOutputs&, const void* scale, const LossGradients&,
              const Execution&);
void forward(const RotatedLossProblem&, const LossOutputs&, const Execution&);
void backward(const RotatedLossProblem&, const GradOutputs&, const void* scale,
              const LossGradients&, const Execution&);
void matching_cost(const CostProblem&, float* cost, const Execution&);
void matching_cost(const RotatedCostProblem&, float* cost, const Execution&);
std::size_t workspace_bytes(const AssignProblem&);
void assign(const AssignProblem&, const AssignOutputs&, const Execution&);
std::size_t workspace_bytes(const MaxIouProblem&);
void max_iou_match(const MaxIouProblem&, const MaxIouOutputs&, const Execution&);
std::size_t workspace_bytes(const TaskAlignedProblem&);
void task_aligned_match(const TaskAlignedProblem&, const TaskAlignedOutputs&, const Execution&);
void collate_targets(const CollateProblem&, const CollateOutputs&, const Execution&);
std::size_t workspace_bytes(const ClassLossProblem&);
void class_loss(const ClassLossProblem&, const ClassLossOutputs&, const Execution&);
void class_loss_backward(const ClassLossGradProblem&, const ClassLossGradOutputs&,
                         const Execution&);
std::size_t workspace_bytes(const DistributionLossProblem&);
void distribution_loss(const DistributionLossProblem&, const DistributionLossOutputs&,
                       const Execution&);
void distribution_loss_backward(const DistributionLossGradProblem&,
                                const DistributionLossGradOutputs&, const Execution&);

}  // namespace boxloss::BOXLOSS_GPU
