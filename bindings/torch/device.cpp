// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "adapter.hpp"
#include "loss_args.hpp"

/// The operators on real tensors: validate, guard, stream, dispatch. Which backend serves them is
/// the registry's affair, so one source stands behind every key.
namespace boxloss::torch_binding {
namespace {

std::optional<at::Tensor> contiguous(const std::optional<at::Tensor>& tensor) {
  return tensor ? std::optional(tensor->contiguous()) : std::nullopt;
}

/// A problem with everything it points to.
struct LossCall {
  const Implementation& implementation;
  LossProblem problem;
  GradView grad_loss;
  std::vector<at::Tensor> kept_alive;
};

/// `grad_loss` is the unreduced loss' gradient, or undefined in forward; reduced ones have no
/// strides.
LossCall make_call(const LossArgs& args, const LossOptions& options, const at::Tensor& grad_loss) {
  LossCall call{implementation_on(args.pred.device()), {}, {}, {}};
  const bool unreduced_grad = grad_loss.defined() && options.reduction == Reduction::kNone;
  const bool ragged = options.pairing == Pairing::Kind::kOffsets;

  std::vector<at::Tensor> tensors = {args.pred, args.target};
  if (unreduced_grad) tensors.push_back(grad_loss);
  Grid grid;
  if (options.pairing == Pairing::Kind::kDense || options.pairing == Pairing::Kind::kMask) {
    grid = make_grid(args.pred.sizes().slice(0, args.pred.dim() - 1), tensors);
  } else {
    grid.images = args.pred.size(0);
    grid.slots = args.pred.size(1);
    for (const at::Tensor& tensor : tensors) {
      const bool is_list = ragged && !tensor.is_same(args.pred);
      grid.strides.push_back(is_list ? Grid::Strides{0, tensor.stride(0)}
                                     : Grid::Strides{tensor.stride(0), tensor.stride(1)});
    }
  }

  const auto view = [&](std::size_t i, BoxFormat format) {
    return BoxView{
        tensors[i].const_data_ptr(), dtype_of(tensors[i]), format, grid.images, grid.slots,
        grid.strides[i].image,       grid.strides[i].slot};
  };
  LossProblem& p = call.problem;
  p.device = call.implementation.device;
  p.pred = view(0, options.pred_format);
  p.target = view(1, options.target_format);
  if (ragged) {
    p.target.images = 1;
    p.target.slots = args.target.size(0);
  }
  p.loss = options.loss;
  p.reduction = options.reduction;
  p.eps = args.eps;
  p.eps_mode = options.eps_mode;

  const auto& indices = args.lengths ? args.lengths : args.mask ? args.mask : args.offsets;
  const auto pairing_data = contiguous(indices);
  const auto weight = contiguous(args.weight);
  p.pairing = {options.pairing, array_view(pairing_data)};
  p.weight = array_view(weight);
  p.normalizer = array_view(args.normalizer);

  if (grad_loss.defined()) {
    const at::Tensor& grad = unreduced_grad ? tensors[2] : grad_loss;
    const Grid::Strides strides = unreduced_grad ? grid.strides[2] : Grid::Strides{};
    call.grad_loss = {grad.const_data_ptr(), strides.image, strides.slot};
  }
  call.kept_alive = std::move(tensors);
  if (pairing_data) call.kept_alive.push_back(*pairing_data);
  if (weight) call.kept_alive.push_back(*weight);
  return call;
}

std::tuple<at::Tensor, at::Tensor> forward(const LossArgs& args) {
  const LossOptions options = check_args(args);
  check_strides(args);
  const c10::OptionalDeviceGuard guard(args.pred.device());
  Execution execution = execution_on(args.pred.device());

  return with_torch_errors(args.function, [&] {
    const LossCall call = make_call(args, options, at::Tensor());
    const auto tensor_options = args.pred.options().dtype(compute_type(args));
    at::IntArrayRef shape;
    if (options.reduction == Reduction::kNone) {
      shape = (args.offsets ? args.target : args.pred).sizes();
      shape = shape.slice(0, shape.size() - 1);
    }
    at::Tensor loss = at::empty(shape, tensor_options);
    at::Tensor scale = at::empty({}, tensor_options);
    const auto bytes = loss_workspace_bytes(call.implementation, call.problem);
    const at::Tensor workspace =
        at::empty({static_cast<std::int64_t>(bytes)}, tensor_options.dtype(at::kByte));
    execution.workspace = workspace.mutable_data_ptr();
    execution.workspace_bytes = bytes;
    loss_forward(call.implementation, call.problem,
                 {loss.mutable_data_ptr(), scale.mutable_data_ptr()}, execution);
    return std::tuple(loss, scale);
  });
}

at::Tensor loss_only(const LossArgs& args) { return std::get<0>(forward(args)); }

LossGradientTensors backward(const at::Tensor& grad_loss, const at::Tensor& scale,
                             const LossArgs& args, const Wanted& wanted) {
  const LossOptions options = check_args(args);
  check_strides(args);
  check_backward_args(grad_loss, scale, args, options, wanted);
  const c10::OptionalDeviceGuard guard(args.pred.device());
  const Execution execution = execution_on(args.pred.device());

  return with_torch_errors(args.function, [&] {
    const LossCall call = make_call(args, options, grad_loss);
    const auto output = [](bool is_wanted, const at::Tensor& like) {
      return is_wanted ? at::empty(like.sizes(), like.options()) : at::empty({0}, like.options());
    };
    const auto pointer = [](bool is_wanted, const at::Tensor& tensor) {
      return is_wanted ? tensor.mutable_data_ptr() : nullptr;
    };
    const at::Tensor pred = output(wanted[0], args.pred);
    const at::Tensor target = output(wanted[1], args.target);
    const at::Tensor weight = output(wanted[2], args.weight.value_or(args.pred));
    loss_backward(
        call.implementation, call.problem, call.grad_loss, scale.const_data_ptr(),
        {pointer(wanted[0], pred), pointer(wanted[1], target), pointer(wanted[2], weight)},
        execution);
    return LossGradientTensors(pred, target, weight);
  });
}

void register_operators(torch::Library& m) {
  m.impl("box_loss", Entries::box_loss<loss_only>);
  m.impl("_box_loss_forward", Entries::box_loss<forward>);
  m.impl("_box_loss_backward", Entries::backward<backward>);
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_IMPL(boxloss, CPU, m) { boxloss::torch_binding::register_operators(m); }

// In every build, so that a cpu-only one can say which flag is missing. It is also the key of ROCm
// builds of torch, whose HIP key is never asked.
TORCH_LIBRARY_IMPL(boxloss, CUDA, m) { boxloss::torch_binding::register_operators(m); }
