// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "distribution_loss.hpp"

#include "loss_operator.hpp"

namespace boxloss::torch_binding {

struct DistributionLoss
    : LossOperator<DistributionLoss, binding::DistributionLoss, binding::DistributionLossBackward> {
  /// A query's logits must be neighbours. What is not dense is refused later.
  static DistributionLossTensors laid_out(DistributionLossTensors args) {
    const auto pack = [](at::Tensor& corners) {
      const bool is_dense = corners.layout() == at::kStrided && !corners.is_nested();
      if (is_dense && corners.dim() > 0 && corners.sym_stride(-1) != 1) {
        corners = corners.contiguous();
      }
    };
    pack(args.logits);
    if (args.teacher) pack(*args.teacher);
    return args;
  }

  static std::tuple<at::Tensor, at::Tensor> composite(const DistributionLossTensors& args) {
    return distribution_loss_composite(args);
  }

  static at::Tensor backward_of(const DistributionLossTensors& a, const at::Tensor& grad,
                                const at::Tensor& scale) {
    return Backward::call({grad, scale, a.logits, a.target_index, a.mode, a.quality, a.reference,
                           a.target, a.edges, a.reg_scale, a.teacher, a.confidence, a.temperature,
                           a.reduction, a.normalizer});
  }

  static const at::Tensor& as_written(const Backward::Tensors&, const at::Tensor& found) {
    return found;
  }
};

at::Tensor call_distribution_loss(const DistributionLossTensors& args) {
  return DistributionLoss::call(args);
}

}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) { boxloss::torch_binding::DistributionLoss::define(m); }
