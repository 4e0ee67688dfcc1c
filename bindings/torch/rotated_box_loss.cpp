// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/rotated_box_loss.hpp"

#include "box_loss/operators.hpp"
#include "losses/rotated/formulas.hpp"

namespace boxloss::torch_binding {

struct RotatedBoxLoss : binding::RotatedBoxLoss, LossFunction<RotatedBoxLoss> {
  static PairValues formula(const RotatedLossProblem& p, const Constants<TensorNumber>& constants,
                            const at::Tensor& pred, const at::Tensor& target, bool /*extras*/) {
    const RotatedBox<TensorNumber> own_p = values_of(pred, p.angle_unit);
    const RotatedBox<TensorNumber> own_t = values_of(target, p.angle_unit);
    PairValues values;
    values.loss =
        with_formula(p.loss, [&](auto formula) { return formula.loss(own_p, own_t, constants); });
    return values;
  }
};

}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  boxloss::torch_binding::define_loss<boxloss::torch_binding::RotatedBoxLoss>(m);
}
