// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstddef>

#include "adapter.hpp"
#include "box_loss_args.hpp"
#include "math/ceil_div.hpp"

/// The operators on real tensors: validate, guard, stream, dispatch. The registry chooses the
/// backend.
namespace boxloss::torch_binding {
namespace {

/// A problem with the tensors that it points to.
struct LossCall {
  const Implementation& implementation;
  LossProblem problem;
  GradOutputs grads = {};
  c10::SmallVector<at::Tensor, 8> kept_alive = {};

  const void* keep(const at::Tensor& tensor) {
    return kept_alive.emplace_back(tensor.contiguous()).const_data_ptr();
  }
  const void* keep(const OptionalTensor& tensor) { return tensor ? keep(*tensor) : nullptr; }
  LossPlan plan() const { return {implementation, problem}; }
};

void set_boxes(BoxView& view, const at::Tensor& boxes, const Grid& grid,
               const Grid::Strides& strides) {
  view.data = boxes.const_data_ptr();
  view.images = grid.images;
  view.slots = grid.slots;
  view.image_stride = strides.image;
  view.slot_stride = strides.slot;
  view.coordinate_stride = boxes.stride(-1);
}

/// pred, target and unreduced gradients on one grid of images and slots; reduced ones have no
/// strides.
void set_grid(LossCall& call, const LossArgs& args, const IncomingTensors& grads) {
  LossProblem& p = call.problem;
  const bool is_reduced = p.reduction != Reduction::kNone;
  const Pairing::Kind pairing = p.pairing.kind;
  const bool ragged = pairing == Pairing::Kind::kOffsets;

  Tensors tensors = {args.pred, args.target};
  for (const OptionalTensor* const grad : {&grads.loss, &grads.l1}) {
    if (*grad && !is_reduced) tensors.push_back(**grad);
  }
  Grid grid;
  if (pairing == Pairing::Kind::kDense || pairing == Pairing::Kind::kMask) {
    grid = make_grid(args.pred.sizes().slice(0, args.pred.dim() - 1), tensors);
  } else {
    grid.images = args.pred.size(0);
    grid.slots = args.pred.size(1);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool is_list = ragged && i > 0;
      grid.strides[i] = is_list ? Grid::Strides{0, tensors[i].stride(0)}
                                : Grid::Strides{tensors[i].stride(0), tensors[i].stride(1)};
    }
  }

  set_boxes(p.pred, tensors[0], grid, grid.strides[0]);
  set_boxes(p.target, tensors[1], grid, grid.strides[1]);
  if (ragged) {
    p.target.images = 1;
    p.target.slots = args.target.size(0);
  }
  p.pairing.data.data = call.keep(args.lengths ? args.lengths
                                  : args.mask  ? args.mask
                                               : args.offsets);

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
void set_list(LossCall& call, BoxView& view, const at::Tensor& boxes, const OptionalTensor& index) {
  Tensors tensors = {boxes};
  const Grid grid = make_grid(boxes.sizes().slice(0, boxes.dim() - 1), tensors);
  set_boxes(view, tensors[0], grid, grid.strides[0]);
  call.kept_alive.push_back(std::move(tensors[0]));
  view.rows.data = call.keep(index);
}

/// Pairs by index.
void set_lists(LossCall& call, const LossArgs& args, const IncomingTensors& grads) {
  LossProblem& p = call.problem;
  const at::Tensor& index = *args.index();
  const bool has_sets = index.dim() == 2;
  p.pairing.sets = has_sets ? index.size(0) : 1;
  p.pairing.pairs = index.size(-1);
  set_list(call, p.pred, args.pred, args.pred_index);
  set_list(call, p.target, args.target, args.target_index);
  const auto grad_view = [&](const OptionalTensor& grad) -> GradView {
    if (!grad) return {};
    return {grad->const_data_ptr(), has_sets ? grad->stride(0) : 0,
            p.reduction == Reduction::kNone ? grad->stride(-1) : 0};
  };
  call.grads.loss = grad_view(grads.loss);
  call.grads.l1 = grad_view(grads.l1);
}

/// With sizes, strides and pointers.
LossCall make_call(const LossArgs& args, const LossProblem& described,
                   const IncomingTensors& grads) {
  LossCall call{implementation_on(args.pred.device()), described};
  LossProblem& p = call.problem;
  p.device = call.implementation.device;
  if (p.pairing.kind == Pairing::Kind::kIndexed) {
    set_lists(call, args, grads);
  } else {
    set_grid(call, args, grads);
  }
  p.weight.data = call.keep(args.weight);
  p.normalizer.data = call.keep(args.normalizer);
  return call;
}

at::DimVector sizes_of(const std::vector<c10::SymInt>& shape) {
  at::DimVector sizes;
  for (const c10::SymInt& size : shape) sizes.push_back(size.expect_int());
  return sizes;
}

/// `scale` is undefined if it is not kept; l1 and iou are without extras.
ForwardTensors run_forward(const LossArgs& args, bool keeps_scale, bool extras) {
  if (aten_is_chosen()) return composite_forward(args, extras);
  const LossProblem described = describe(args);
  return with_torch_errors(args.function, [&] {
    const LossCall call = make_call(args, described, {});
    const c10::OptionalDeviceGuard guard(args.pred.device());
    Execution execution = execution_on(args.pred.device());
    const LossPlan plan = call.plan();
    const at::TensorOptions options = args.pred.options().dtype(compute_type(args));
    const at::DimVector sets = sizes_of(reduced_shape(args));
    const bool is_reduced = described.reduction != Reduction::kNone;
    at::DimVector rows;
    if (extras || !is_reduced) rows = sizes_of(loss_shape(args));
    const at::DimVector& values = is_reduced ? sets : rows;
    const at::Tensor loss = at::empty(values, options);
    // Pointers tell core what is wanted, and tensors without elements have none.
    if (loss.numel() == 0) checked(args, extras);
    const at::Tensor scale = keeps_scale ? at::empty(sets, options) : at::Tensor();
    const at::Tensor l1 = extras ? at::empty(values, options) : at::Tensor();
    const at::Tensor iou = extras ? at::empty(rows, options) : at::Tensor();

    // A scale that is not kept lies in front of the workspace.
    const std::size_t of_scale =
        keeps_scale ? 0 : 16 * ceil_div(loss_sets(call.problem) * options.dtype().itemsize(), 16);
    const Scratch scratch(of_scale + plan.workspace_bytes(), args.pred);
    execution.workspace = scratch.data() + of_scale;
    execution.workspace_bytes = plan.workspace_bytes();
    LossOutputs outputs{loss.mutable_data_ptr(),
                        keeps_scale ? scale.mutable_data_ptr() : scratch.data()};
    if (extras) {
      outputs.l1 = l1.mutable_data_ptr();
      outputs.iou = iou.mutable_data_ptr();
    }
    plan.forward(arrays_of(call.problem), outputs, execution);
    return ForwardTensors(loss, scale, l1, iou);
  });
}

ForwardTensors forward(const LossArgs& args, bool extras) {
  ForwardTensors outputs = run_forward(args, true, extras);
  if (!extras) {
    std::get<2>(outputs) = no_elements(args.pred, compute_type(args));
    std::get<3>(outputs) = no_elements(args.pred, compute_type(args));
  }
  return outputs;
}

at::Tensor loss_only(const LossArgs& args) { return std::get<0>(run_forward(args, false, false)); }

LossesTensors losses(const LossArgs& args) {
  const auto [loss, scale, l1, iou] = run_forward(args, false, true);
  return {loss, l1, iou};
}

/// Core writes a gradient with the strides of the boxes that it reads. If those are a copy, but the
/// gradient needs the original's strides, core writes another tensor, which is then copied.
class BoxGradient {
 public:
  BoxGradient(const LossArgs& args, const at::Tensor& boxes, const BoxView& read, bool is_wanted,
              const at::Tensor& result)
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

LossGradientTensors backward(const IncomingTensors& grads, const at::Tensor& scale,
                             const LossArgs& args, const Wanted& wanted) {
  const LossProblem described = describe(args);
  check_backward_args(grads, scale, args, described, wanted);
  if (aten_is_chosen()) return composite_backward(grads, args, wanted);
  const bool adds_up = (wanted[0] && args.pred_index) || (wanted[1] && args.target_index);
  if (adds_up && !args.pred.is_cpu()) {
    at::globalContext().alertNotDeterministic("box_loss backward with indices");
  }
  return with_torch_errors(args.function, [&] {
    const LossCall call = make_call(args, described, grads);
    const c10::OptionalDeviceGuard guard(args.pred.device());
    const LossPlan plan = call.plan();
    const at::Tensor factors = scale.contiguous();
    const LossGradientTensors results = empty_gradients(args, wanted);
    const auto& [of_pred, of_target, of_weight] = results;
    const BoxGradient pred(args, args.pred, call.problem.pred, wanted[0], of_pred);
    const BoxGradient target(args, args.target, call.problem.target, wanted[1], of_target);
    void* const weight = wanted[2] ? of_weight.mutable_data_ptr() : nullptr;
    plan.backward(
        arrays_of(call.problem), call.grads, factors.const_data_ptr(),
        {pred.data(), target.data(), weight, pred.keeps_strides(), target.keeps_strides()},
        execution_on(args.pred.device()));
    pred.finish();
    target.finish();
    return results;
  });
}

void register_operators(torch::Library& m) {
  m.impl("box_loss", Entries::box_loss<loss_only>);
  m.impl("box_losses", Entries::box_losses<losses>);
  m.impl("_box_loss_forward", Entries::forward<forward>);
  m.impl("_box_loss_backward", Entries::backward<backward>);
}

}  // namespace
}  // namespace boxloss::torch_binding

// Every device of torch: the registry says what serves it, or an error does.
TORCH_LIBRARY_IMPL(boxloss, CompositeExplicitAutograd, m) {
  boxloss::torch_binding::register_operators(m);
}
