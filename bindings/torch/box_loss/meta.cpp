// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "../adapter.hpp"
#include "args.hpp"

/// The operators' shapes and dtypes, symbolic ones included.
namespace boxloss::torch_binding {
namespace {

ForwardTensors forward(const LossArgs& args, bool extras) {
  return with_torch_errors(args.function, [&] {
    const ConvertedLoss<c10::SymInt> converted(args.function, args);
    const LossProblem problem = binding::BoxLoss::describe(converted.arguments(), extras);
    const auto [loss, scale, l1, iou] =
        binding::BoxLoss::outputs(converted.arguments(), problem, extras);
    const auto empty = [&](bool is_wanted, const binding::Output<c10::SymInt>& output) {
      const auto type = scalar_type(output.dtype);
      return is_wanted ? at::empty_symint(output.shape, args.pred.options().dtype(type))
                       : no_elements(args.pred, type);
    };
    return ForwardTensors(empty(true, loss), empty(true, scale), empty(extras, l1),
                          empty(extras, iou));
  });
}

at::Tensor loss_only(const LossArgs& args) { return std::get<0>(forward(args, false)); }

LossesTensors losses(const LossArgs& args) {
  const auto [loss, scale, l1, iou] = forward(args, true);
  return {loss, l1, iou};
}

LossGradientTensors backward(const IncomingTensors& grads, const at::Tensor& scale,
                             const LossArgs& args, const Wanted& wanted) {
  checked_backward(grads, scale, args, wanted);
  return empty_gradients(args, wanted);
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_IMPL(boxloss, Meta, m) {
  using namespace boxloss::torch_binding;
  m.impl("box_loss", Entries::box_loss<loss_only>);
  m.impl("box_losses", Entries::box_losses<losses>);
  m.impl("_box_loss_forward", Entries::forward<forward>);
  m.impl("_box_loss_backward", Entries::backward<backward>);
}
