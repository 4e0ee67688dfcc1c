// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/rotated_box_loss.hpp"

#include "box_loss/operators.hpp"
#include "losses/rotated/formulas.hpp"

namespace boxloss::torch_binding {

struct RotatedBoxLoss : binding::RotatedBoxLoss, LossFunction<RotatedBoxLoss> {
  static PairValues formula(const RotatedLossProblem& p, const Constants<TensorNumber>& constants,
                            const at::Tensor& pred, const at::Tensor& target, bool /*extras*/) {
    const RotatedBox<TensorNumber> own_p = box_of(pred, p.angle_unit);
    const RotatedBox<TensorNumber> own_t = box_of(target, p.angle_unit);
    PairValues values;
    values.loss =
        with_formula(p.loss, [&](auto formula) { return formula.loss(own_p, own_t, constants); });
    return values;
  }

 private:
  static RotatedBox<TensorNumber> box_of(const at::Tensor& boxes, AngleUnit unit) {
    const std::vector<at::Tensor> v = boxes.unbind(-1);
    return in_radians(RotatedBox<TensorNumber>{v[0], v[1], v[2], v[3], v[4]}, unit);
  }
};

}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  boxloss::torch_binding::define_loss<boxloss::torch_binding::RotatedBoxLoss>(m);
}
