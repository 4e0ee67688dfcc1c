// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "giou_args.hpp"

/// The operators' shapes and dtypes, symbolic ones included.
namespace boxloss::torch_binding {
namespace {

at::Tensor loss_only(const GiouLossArgs& args) {
  const GiouLossOptions options = check_args(args);
  check_strides(args);
  const auto tensor_options = args.pred.options().dtype(compute_type(args));
  if (options.reduction != Reduction::kNone) return at::empty({}, tensor_options);
  return at::empty_symint(loss_shape(args), tensor_options);
}

std::tuple<at::Tensor, at::Tensor> forward(const GiouLossArgs& args) {
  return {loss_only(args), at::empty({}, args.pred.options().dtype(compute_type(args)))};
}

std::vector<at::Tensor> backward(const at::Tensor& grad_loss, const at::Tensor& scale,
                                 const GiouLossArgs& args, const Wanted& wanted) {
  const GiouLossOptions options = check_args(args);
  check_strides(args);
  check_backward_args(grad_loss, scale, args, options, wanted);
  std::vector<at::Tensor> gradients;
  const auto output = [&](bool is_wanted, const at::Tensor& like) {
    if (is_wanted) gradients.push_back(at::empty_symint(like.sym_sizes(), like.options()));
  };
  output(wanted[0], args.pred);
  output(wanted[1], args.target);
  if (wanted[2]) output(true, *args.weight);
  return gradients;
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_IMPL(boxloss, Meta, m) {
  using namespace boxloss::torch_binding;
  m.impl("giou_loss", giou_loss_entry<loss_only>);
  m.impl("_giou_loss_forward", giou_loss_entry<forward>);
  m.impl("_giou_loss_backward", giou_loss_backward_entry<backward>);
}
