// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "formulas.hpp"

#include "losses/formulas.hpp"
#include "losses/l1.hpp"
#include "losses/rotated/formulas.hpp"

namespace boxloss::torch_binding {

TensorNumber loss_of(Loss loss, const TensorBox& pred, const TensorBox& target,
                     const TensorConstants& constants) {
  return with_formula(loss, [&](auto formula) { return formula.loss(pred, target, constants); });
}

TensorNumber loss_of(RotatedLoss loss, const RotatedBox<TensorNumber>& pred,
                     const RotatedBox<TensorNumber>& target, const TensorConstants& constants) {
  return with_formula(loss, [&](auto formula) { return formula.loss(pred, target, constants); });
}

TensorNumber iou_of(const TensorBox& pred, const TensorBox& target,
                    const TensorConstants& constants) {
  return boxloss::iou_of(overlap(pred, target, constants));
}

TensorNumber l1_distance(const TensorBox& pred, const TensorBox& target) {
  return boxloss::l1_distance(pred, target);
}

}  // namespace boxloss::torch_binding
