// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/rotated_loss.hpp>

/// A loss of paired rotated boxes, forward and backward: (images, slots, 5) values, which are the
/// centre, width, height and the angle by which the box is turned around its centre. In all else it
/// is as `box_loss`, with the same structs.
namespace boxloss {

/// The views' `format` is not used. A view that is assigned whole needs its `slot_stride`: 4, which
/// a view has at first, is refused.
struct RotatedLossProblem : PairProblem {
  static constexpr int kNumbers = 5;  ///< of a box

  RotatedLoss loss{};  ///< must be set
  AngleUnit angle_unit = AngleUnit::kRadians;

  /// Boxes are contiguous at first, as a view's are.
  RotatedLossProblem() { pred.slot_stride = target.slot_stride = kNumbers; }
};

/// As the functions of `box_loss` (see there). There is no output `l1`, and `iou` only of losses by
/// area. Gradients are by the values as they are given, in their unit of angles.
BOXLOSS_API void check_options(const RotatedLossProblem& problem, Set<Extra> extras = {});
BOXLOSS_API std::size_t loss_workspace_bytes(const Implementation& implementation,
                                             const RotatedLossProblem& problem);
BOXLOSS_API void loss_forward(const Implementation& implementation,
                              const RotatedLossProblem& problem, const LossOutputs& outputs,
                              const Execution& execution);
BOXLOSS_API void loss_backward(const Implementation& implementation,
                               const RotatedLossProblem& problem, const GradOutputs& grads,
                               const void* scale, const LossGradients& gradients,
                               const Execution& execution);

}  // namespace boxloss
