// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "adapter.hpp"
#include "box_loss_args.hpp"

/// The operators' shapes and dtypes, symbolic ones included.
namespace boxloss::torch_binding {
namespace {

ForwardTensors forward(const LossArgs& args, bool extras) {
  const LossProblem problem = checked(args, extras);
  const auto empty = [&](bool is_wanted, const std::vector<c10::SymInt>& shape) {
    const auto tensor_options = args.pred.options().dtype(compute_type(args));
    return is_wanted ? at::empty_symint(shape, tensor_options)
                     : no_elements(args.pred, compute_type(args));
  };
  const auto rows = loss_shape(args), sets = reduced_shape(args);
  const auto& values = problem.reduction == Reduction::kNone ? rows : sets;
  return {empty(true, values), empty(true, sets), empty(extras, values), empty(extras, rows)};
}

at::Tensor loss_only(const LossArgs& args) { return std::get<0>(forward(args, false)); }

LossesTensors losses(const LossArgs& args) {
  const auto [loss, scale, l1, iou] = forward(args, true);
  return {loss, l1, iou};
}

LossGradientTensors backward(const IncomingTensors& grads, const at::Tensor& scale,
                             const LossArgs& args, const Wanted& wanted) {
  check_backward_args(grads, scale, args, checked(args, grads.l1.has_value()), wanted);
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
