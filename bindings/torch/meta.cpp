// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "loss_args.hpp"

/// The operators' shapes and dtypes, symbolic ones included.
namespace boxloss::torch_binding {
namespace {

at::Tensor loss_only(const LossArgs& args) {
  const LossOptions options = check_args(args);
  check_strides(args);
  const auto tensor_options = args.pred.options().dtype(compute_type(args));
  if (options.reduction != Reduction::kNone) return at::empty({}, tensor_options);
  return at::empty_symint(loss_shape(args), tensor_options);
}

std::tuple<at::Tensor, at::Tensor> forward(const LossArgs& args) {
  return {loss_only(args), at::empty({}, args.pred.options().dtype(compute_type(args)))};
}

LossGradientTensors backward(const at::Tensor& grad_loss, const at::Tensor& scale,
                             const LossArgs& args, const Wanted& wanted) {
  const LossOptions options = check_args(args);
  check_strides(args);
  check_backward_args(grad_loss, scale, args, options, wanted);
  const auto output = [](bool is_wanted, const at::Tensor& like) {
    return is_wanted ? at::empty_symint(like.sym_sizes(), like.options())
                     : at::empty({0}, like.options());
  };
  return {output(wanted[0], args.pred), output(wanted[1], args.target),
          output(wanted[2], args.weight.value_or(args.pred))};
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_IMPL(boxloss, Meta, m) {
  using namespace boxloss::torch_binding;
  m.impl("box_loss", Entries::box_loss<loss_only>);
  m.impl("_box_loss_forward", Entries::box_loss<forward>);
  m.impl("_box_loss_backward", Entries::backward<backward>);
}
