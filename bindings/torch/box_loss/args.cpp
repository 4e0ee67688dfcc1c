// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "args.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/SymIntArrayRef.h>

#include "../adapter.hpp"

namespace boxloss::torch_binding {
LossProblem checked(const LossArgs& a, bool extras) {
  return with_torch_errors(a.function, [&] {
    return binding::BoxLoss::describe(ConvertedLoss<c10::SymInt>(a.function, a).arguments(),
                                      extras);
  });
}

template <class Size>
void check_backward_args(const IncomingTensors& grads, const at::Tensor& scale, const LossArgs& a,
                         const std::array<binding::Output<Size>, 4>& forward,
                         const Wanted& wanted) {
  const auto shape_of = [](const at::Tensor& tensor) {
    if constexpr (binding::kHasNumbers<Size>) {
      return tensor.sizes();
    } else {
      return tensor.sym_sizes();
    }
  };
  const auto check = [&](const char* argument, const at::Tensor& given,
                         const binding::Output<Size>& output, const char* why) {
    check_placed(a.function, argument, given, "pred", &a.pred);
    const c10::ArrayRef<Size> wanted_shape(output.shape);
    TORCH_CHECK_VALUE(shape_of(given) == wanted_shape, a.function, ": ", argument, " has shape ",
                      shape_of(given), "; it must be ", wanted_shape, ", ", why);
    TORCH_CHECK_TYPE(given.scalar_type() == scalar_type(output.dtype), a.function, ": ", argument,
                     " is ", c10::getDtypeNames(given.scalar_type()).first, "; it must be ",
                     name_of(output.dtype), ", as the loss is");
  };
  TORCH_CHECK_VALUE(grads.loss || grads.l1, a.function, ": grad_loss and grad_l1 are both None");
  if (grads.loss) check("grad_loss", *grads.loss, forward[0], "the shape of the loss");
  if (grads.l1) check("grad_l1", *grads.l1, forward[2], "the shape of the loss");
  check("scale", scale, forward[1], "as forward returned it");
  TORCH_CHECK_VALUE(!wanted[2] || a.weight, a.function,
                    ": wanted[2] asks for the gradient of weight, "
                    "which is not given");
}
template void check_backward_args(const IncomingTensors&, const at::Tensor&, const LossArgs&,
                                  const std::array<binding::Output<std::int64_t>, 4>&,
                                  const Wanted&);

void checked_backward(const IncomingTensors& grads, const at::Tensor& scale, const LossArgs& args,
                      const Wanted& wanted) {
  with_torch_errors(args.function, [&] {
    const ConvertedLoss<c10::SymInt> converted(args.function, args);
    const auto& arguments = converted.arguments();
    const bool extras = grads.l1.has_value();
    const LossProblem p = binding::BoxLoss::describe(arguments, extras);
    const auto forward = binding::BoxLoss::outputs(arguments, p, extras);
    check_backward_args(grads, scale, args, forward, wanted);
  });
}

namespace {

/// Decides by strides alone where possible: a masked tensor's number of boxes is unknown while
/// compiling.
bool has_contiguous_strides(const at::Tensor& tensor) {
  c10::SymInt expected = 1;
  for (std::int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (tensor.sym_stride(d) != expected && tensor.sym_size(d) != 1) return false;
    expected *= tensor.sym_size(d);
  }
  return true;
}

}  // namespace

bool keeps_strides(const LossArgs& a, const at::Tensor& boxes) {
  return a.index() == nullptr && !has_contiguous_strides(boxes) &&
         boxes.is_non_overlapping_and_dense();
}

LossGradientTensors empty_gradients(const LossArgs& a, const Wanted& wanted) {
  const auto contiguous = [](const at::Tensor& like) {
    return at::empty_symint(like.sym_sizes(), like.options());
  };
  const auto of_boxes = [&](bool is_wanted, const at::Tensor& boxes) {
    if (!is_wanted) return no_elements(boxes, boxes.scalar_type());
    if (!keeps_strides(a, boxes)) return contiguous(boxes);
    return at::empty_strided_symint(boxes.sym_sizes(), boxes.sym_strides(), boxes.options());
  };
  return {of_boxes(wanted[0], a.pred), of_boxes(wanted[1], a.target),
          wanted[2] ? contiguous(*a.weight) : no_elements(a.pred, a.pred.scalar_type())};
}

at::ScalarType compute_type(const LossArgs& a) {
  const bool is_f64 = a.pred.scalar_type() == at::kDouble || a.target.scalar_type() == at::kDouble;
  return is_f64 ? at::kDouble : at::kFloat;
}

std::vector<c10::SymInt> loss_shape(const LossArgs& a) {
  return binding::BoxLoss::shape_of_rows(ConvertedLoss<c10::SymInt>(a.function, a).arguments());
}

std::vector<c10::SymInt> reduced_shape(const LossArgs& a) {
  return binding::BoxLoss::shape_of_sets(ConvertedLoss<c10::SymInt>(a.function, a).arguments());
}

at::Tensor call_box_loss(const LossArgs& args) {
  static const auto op =
      find_operator<Signature<at::Tensor, std::tuple<>, Fields>>("boxloss::box_loss");
  return call_with(op, args.fields());
}

LossesTensors call_box_losses(const LossArgs& args) {
  static const auto op =
      find_operator<Signature<LossesTensors, std::tuple<>, Fields>>("boxloss::box_losses");
  return call_with(op, args.fields());
}

ForwardTensors call_box_loss_forward(const LossArgs& args, bool extras) {
  static const auto op = find_operator<Signature<ForwardTensors, std::tuple<>, Fields, bool>>(
      "boxloss::_box_loss_forward");
  return call_with(op, args.fields(), extras);
}

LossGradientTensors call_box_loss_backward(const IncomingTensors& grads, const at::Tensor& scale,
                                           const LossArgs& args, const Wanted& wanted) {
  using Before = std::tuple<const OptionalTensor&, const OptionalTensor&, const at::Tensor&>;
  static const auto op = find_operator<Signature<LossGradientTensors, Before, Fields, Wanted>>(
      "boxloss::_box_loss_backward");
  return call_with(op, std::tuple_cat(std::tie(grads.loss, grads.l1, scale), args.fields()),
                   wanted);
}

}  // namespace boxloss::torch_binding
