// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "class_loss.hpp"

#include "loss_operator.hpp"

namespace boxloss::torch_binding {

struct ClassLoss : LossOperator<ClassLoss, binding::ClassLoss, binding::ClassLossBackward> {
  static const ClassLossTensors& laid_out(const ClassLossTensors& args) { return args; }

  static std::tuple<at::Tensor, at::Tensor> composite(const ClassLossTensors& args) {
    return class_loss_composite(args);
  }

  static at::Tensor backward_of(const ClassLossTensors& a, const at::Tensor& grad,
                                const at::Tensor& scale) {
    // Where queries are neighbours in memory, and classes are not, the gradient lies so, too.
    const bool transposed =
        a.logits.dim() >= 2 && a.logits.sym_stride(-2) == 1 && a.logits.sym_stride(-1) != 1;
    const at::Tensor found =
        Backward::call({grad, scale, transposed, a.logits, a.target_index, a.labels, a.mode,
                        a.quality, a.query_quality, a.weight, a.alpha, a.gamma, a.no_object_weight,
                        a.reduction, a.normalizer});
    return transposed ? found.mT() : found;
  }

  static at::Tensor as_written(const Backward::Tensors& all, const at::Tensor& found) {
    return all.transposed ? found.mT() : found;
  }
};

at::Tensor call_class_loss(const ClassLossTensors& args) { return ClassLoss::call(args); }

}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) { boxloss::torch_binding::ClassLoss::define(m); }
