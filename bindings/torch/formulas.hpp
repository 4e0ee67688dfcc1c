// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/loss.hpp>
#include <boxloss/rotated_loss.hpp>

#include "losses/eps.hpp"
#include "tensor_number.hpp"

/// Core's formulas of pairs on tensors, compiled once for all who call them.
namespace boxloss::torch_binding {

using TensorConstants = Constants<TensorNumber>;

TensorNumber loss_of(Loss loss, const TensorBox& pred, const TensorBox& target,
                     const TensorConstants& constants);
TensorNumber loss_of(RotatedLoss loss, const RotatedBox<TensorNumber>& pred,
                     const RotatedBox<TensorNumber>& target, const TensorConstants& constants);
TensorNumber iou_of(const TensorBox& pred, const TensorBox& target,
                    const TensorConstants& constants);
TensorNumber l1_distance(const TensorBox& pred, const TensorBox& target);

}  // namespace boxloss::torch_binding
