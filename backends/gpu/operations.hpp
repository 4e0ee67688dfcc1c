// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

#include <boxloss/assign.hpp>
#include <boxloss/box_loss.hpp>
#include <boxloss/matching_cost.hpp>
#include <boxloss/max_iou_match.hpp>
#include <boxloss/target_faults.hpp>
#include <boxloss/task_aligned_match.hpp>

/// The two passes, and the operations without a gradient, in separate translation units so that
/// processors share the work.
namespace boxloss::BOXLOSS_GPU {

void forward(const LossProblem&, const LossOutputs&, const Execution&);
void backward(const LossProblem&, const GradOutputs&, const void* scale, const LossGradients&,
              const Execution&);
void matching_cost(const CostProblem&, float* cost, const Execution&);
std::size_t workspace_bytes(const AssignProblem&);
void assign(const AssignProblem&, const AssignOutputs&, const Execution&);
std::size_t workspace_bytes(const MaxIouProblem&);
void max_iou_match(const MaxIouProblem&, const MaxIouOutputs&, const Execution&);
std::size_t workspace_bytes(const TaskAlignedProblem&);
void task_aligned_match(const TaskAlignedProblem&, const TaskAlignedOutputs&, const Execution&);
void target_faults(const TargetProblem&, const TargetOutputs&, const Execution&);

}  // namespace boxloss::BOXLOSS_GPU
