// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../../common/box_loss.hpp"

#include "losses/formulas.hpp"
#include "losses/l1.hpp"
#include "operators.hpp"

namespace boxloss::torch_binding {

struct BoxLoss : binding::BoxLoss, LossFunction<BoxLoss> {
  static PairValues formula(const LossProblem& p, const Constants<TensorNumber>& constants,
                            const at::Tensor& pred, const at::Tensor& target, bool extras) {
    const TensorBox raw_p = values_of(pred), raw_t = values_of(target);
    const TensorBox own_p = to_corners(raw_p, p.pred.format);
    const TensorBox own_t = to_corners(raw_t, p.target.format);
    PairValues values;
    values.loss =
        with_formula(p.loss, [&](auto formula) { return formula.loss(own_p, own_t, constants); });
    if (!extras) return values;
    values.l1 = l1_distance(raw_p, raw_t);
    values.iou = iou_of(overlap(own_p, own_t, constants));
    return values;
  }
};

}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  boxloss::torch_binding::define_loss<boxloss::torch_binding::BoxLoss>(m);
}
