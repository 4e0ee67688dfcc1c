// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>

#include <cstddef>

#include "composite.hpp"
#include "math/ceil_div.hpp"

/// The operators on real tensors: validate, guard, stream, dispatch. The registry chooses the
/// backend.
namespace boxloss::torch_binding::kernels {

/// A problem with the tensors that it points to.
template <class Own>
struct LossCall {
  LossCall(const LossArgs<Own>& args, bool extras)
      : implementation(implementation_on(args.pred.device())),
        converted(args.function, args),
        problem(Own::describe(converted.arguments(), extras)) {
    problem.device = implementation.device;
  }

  const Implementation& implementation;  ///< first, before memory is asked for on its device
  Converted<Own, std::int64_t> converted;
  typename Own::Problem problem;
  GradOutputs grads = {};
  Tensors kept_alive = {};
};

inline void set_boxes(BoxView& view, const at::Tensor& boxes, const TensorGrid& grid,
                      const TensorGrid::Strides& strides) {
  view.data = boxes.const_data_ptr();
  view.images = grid.images;
  view.slots = grid.slots;
  view.image_stride = strides.image;
  view.slot_stride = strides.slot;
  view.coordinate_stride = boxes.stride(-1);
}

/// pred, target and unreduced gradients on one grid of images and slots; reduced ones have no
/// strides.
template <class Own>
void set_grid(LossCall<Own>& call, const LossArgs<Own>& args, const IncomingTensors& grads) {
  auto& p = call.problem;
  const bool is_reduced = p.reduction != Reduction::kNone;
  const Pairing::Kind pairing = p.pairing.kind;
  const bool ragged = pairing == Pairing::Kind::kOffsets;

  Tensors tensors = {args.pred, args.target};
  for (const OptionalTensor* const grad : {&grads.loss, &grads.l1}) {
    if (*grad && !is_reduced) tensors.push_back(**grad);
  }
  TensorGrid grid;
  if (pairing == Pairing::Kind::kDense || pairing == Pairing::Kind::kMask) {
    grid = make_grid(args.pred.sizes().slice(0, args.pred.dim() - 1), tensors);
  } else {
    grid.images = args.pred.size(0);
    grid.slots = args.pred.size(1);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool is_list = ragged && i > 0;
      grid.strides[i] = is_list ? TensorGrid::Strides{0, tensors[i].stride(0)}
                                : TensorGrid::Strides{tensors[i].stride(0), tensors[i].stride(1)};
    }
  }

  set_boxes(p.pred, tensors[0], grid, grid.strides[0]);
  set_boxes(p.target, tensors[1], grid, grid.strides[1]);
  if (ragged) {
    p.target.images = 1;
    p.target.slots = args.target.size(0);
  }
  std::size_t next = 2;
  const auto grad_view = [&](const OptionalTensor& grad) -> GradView {
    if (!grad) return {};
    if (is_reduced) return {grad->const_data_ptr(), 0, 0};
    const std::size_t i = next++;
    return {tensors[i].const_data_ptr(), grid.strides[i].image, grid.strides[i].slot};
  };
  call.grads.loss = grad_view(grads.loss);
  call.grads.l1 = grad_view(grads.l1);
  for (at::Tensor& tensor : tensors) call.kept_alive.push_back(std::move(tensor));
}

/// Boxes as a list, whatever their leading dimensions are.
template <class Own>
void set_list(LossCall<Own>& call, BoxView& view, const at::Tensor& boxes) {
  Tensors tensors = {boxes};
  const TensorGrid grid = make_grid(boxes.sizes().slice(0, boxes.dim() - 1), tensors);
  set_boxes(view, tensors[0], grid, grid.strides[0]);
  call.kept_alive.push_back(std::move(tensors[0]));
}

/// Pairs by index.
template <class Own>
void set_lists(LossCall<Own>& call, const LossArgs<Own>& args, const IncomingTensors& grads) {
  auto& p = call.problem;
  const at::Tensor& index = *args.index();
  const bool has_sets = index.dim() == 2;
  p.pairing.sets = has_sets ? index.size(0) : 1;
  p.pairing.pairs = index.size(-1);
  set_list(call, p.pred, args.pred);
  set_list(call, p.target, args.target);
  const auto grad_view = [&](const OptionalTensor& grad) -> GradView {
    if (!grad) return {};
    return {grad->const_data_ptr(), has_sets ? grad->stride(0) : 0,
            p.reduction == Reduction::kNone ? grad->stride(-1) : 0};
  };
  call.grads.loss = grad_view(grads.loss);
  call.grads.l1 = grad_view(grads.l1);
}

template <class Own>
void set_sizes(LossCall<Own>& call, const LossArgs<Own>& args, const IncomingTensors& grads) {
  if (args.index() != nullptr) return set_lists(call, args, grads);
  set_grid(call, args, grads);
}

/// `scale` is undefined if it is not kept; l1 and iou are without extras.
template <class Own>
ForwardTensors run_forward(const LossArgs<Own>& args, bool keeps_scale, bool extras) {
  if (aten_is_chosen()) return composite_forward(args, extras);
  return with_torch_errors(args.function, [&] {
    LossCall<Own> call(args, extras);
    set_sizes(call, args, {});
    const c10::OptionalDeviceGuard guard(args.pred.device());
    Execution execution = execution_on(args.pred.device());
    const std::size_t bytes = loss_workspace_bytes(call.implementation, call.problem);
    const auto arrays = outputs_of<Own>(call.converted.arguments(), call.problem, extras);
    const auto empty = [&](bool is_wanted, const binding::Output<std::int64_t>& output) {
      const auto options = args.pred.options().dtype(scalar_type(output.dtype));
      return is_wanted ? at::empty(output.shape, options) : at::Tensor();
    };
    const at::Tensor loss = empty(true, arrays[0]), scale = empty(keeps_scale, arrays[1]);
    at::Tensor l1, iou;
    if constexpr (kHasExtras<Own>) {
      l1 = empty(extras, arrays[2]);
      iou = empty(extras, arrays[3]);
    }

    // A scale that is not kept lies in front of the workspace.
    const std::size_t of_scale =
        keeps_scale ? 0 : 16 * ceil_div(loss_sets(call.problem) * size_of(arrays[1].dtype), 16);
    const Scratch scratch(of_scale + bytes, args.pred);
    execution.workspace = scratch.data() + of_scale;
    execution.workspace_bytes = bytes;
    LossOutputs outputs{loss.mutable_data_ptr(),
                        keeps_scale ? scale.mutable_data_ptr() : scratch.data()};
    if (extras) {
      outputs.l1 = l1.mutable_data_ptr();
      outputs.iou = iou.mutable_data_ptr();
    }
    loss_forward(call.implementation, call.problem, outputs, execution);
    return ForwardTensors(loss, scale, l1, iou);
  });
}

template <class Own>
ForwardTensors forward(const LossArgs<Own>& args, bool extras) {
  ForwardTensors outputs = run_forward(args, true, extras);
  if (kHasExtras<Own> && !extras) {
    std::get<2>(outputs) = no_elements(args.pred, compute_type(args));
    std::get<3>(outputs) = no_elements(args.pred, compute_type(args));
  }
  return outputs;
}

template <class Own>
at::Tensor loss_only(const LossArgs<Own>& args) {
  return std::get<0>(run_forward(args, false, false));
}

template <class Own>
LossesTensors losses(const LossArgs<Own>& args) {
  const auto [loss, scale, l1, iou] = run_forward(args, false, true);
  return {loss, l1, iou};
}

/// Core writes a gradient with the strides of the boxes that it reads. If those are a copy, but the
/// gradient needs the original's strides, core writes another tensor, which is then copied.
class BoxGradient {
 public:
  template <class Own>
  BoxGradient(const LossArgs<Own>& args, const at::Tensor& boxes, const BoxView& read,
              bool is_wanted, const at::Tensor& result)
      : result_(result), written_(result) {
    if (!is_wanted) return;
    keeps_strides_ = torch_binding::keeps_strides(args, boxes);
    if (keeps_strides_ && read.data != boxes.const_data_ptr()) {
      keeps_strides_ = false;
      written_ = at::empty(boxes.sizes(), boxes.options());
    }
    data_ = written_.mutable_data_ptr();
  }

  bool keeps_strides() const { return keeps_strides_; }
  void* data() const { return data_; }
  void finish() const {
    if (!written_.is_same(result_)) result_.copy_(written_);
  }

 private:
  at::Tensor result_, written_;
  bool keeps_strides_ = false;
  void* data_ = nullptr;
};

template <class Own>
LossGradientTensors backward(const IncomingTensors& grads, const at::Tensor& scale,
                             const LossArgs<Own>& args, const Wanted& wanted) {
  if (aten_is_chosen()) {
    checked_backward(grads, scale, args, wanted);
    return composite_backward(grads, args, wanted);
  }
  const bool adds_up = (wanted[0] && args.pred_index) || (wanted[1] && args.target_index);
  if (adds_up && !args.pred.is_cpu()) {
    static const std::string words = std::string(Own::kFunction) + " backward with indices";
    at::globalContext().alertNotDeterministic(words);
  }
  return with_torch_errors(args.function, [&] {
    const bool extras = grads.l1.has_value();
    LossCall<Own> call(args, extras);
    const auto forward = outputs_of<Own>(call.converted.arguments(), call.problem, extras);
    check_backward_args(grads, scale, args, forward, wanted);
    set_sizes(call, args, grads);
    const c10::OptionalDeviceGuard guard(args.pred.device());
    const at::Tensor factors = scale.contiguous();
    const LossGradientTensors results = empty_gradients(args, wanted);
    const auto& [of_pred, of_target, of_weight] = results;
    const BoxGradient pred(args, args.pred, call.problem.pred, wanted[0], of_pred);
    const BoxGradient target(args, args.target, call.problem.target, wanted[1], of_target);
    void* const weight = wanted[2] ? of_weight.mutable_data_ptr() : nullptr;
    loss_backward(
        call.implementation, call.problem, call.grads, factors.const_data_ptr(),
        {pred.data(), target.data(), weight, pred.keeps_strides(), target.keeps_strides()},
        execution_on(args.pred.device()));
    pred.finish();
    target.finish();
    return results;
  });
}

}  // namespace boxloss::torch_binding::kernels
