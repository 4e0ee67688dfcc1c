// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../common/box_loss.hpp"
#include "../operation.hpp"

/// The operators' arguments as one struct, and its conversion from and to the dispatcher's.
namespace boxloss::torch_binding {

struct LossArgs : TensorsOf<binding::BoxLoss> {
  /// The called function's name, for errors.
  const char* function = "box_loss";

  /// Pairs by index: the index that gives them their shape, (P) or (S, P). Null for all others.
  const at::Tensor* index() const {
    return pred_index ? &*pred_index : target_index ? &*target_index : nullptr;
  }
};

template <class Size>
using ConvertedLoss = Converted<binding::BoxLoss, Size>;

/// loss, scale, l1, iou; the last two have no elements without extras.
using ForwardTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// loss, l1, iou.
using LossesTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// The incoming gradients of loss and l1; an undefined one is left out.
struct IncomingTensors {
  OptionalTensor loss, l1;
};

/// Which gradients backward computes: pred, target, weight.
using Wanted = std::array<bool, 3>;

/// The gradients of pred, target and weight; without elements where not wanted.
using LossGradientTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// The functions that the dispatcher calls, each with the long parameter list; they pass the struct
/// to `kernel`.
template <class Fields>
struct EntriesFor;
template <class... Field>
struct EntriesFor<std::tuple<Field...>> {
  template <auto kernel>
  static auto box_loss(Parameter<Field>... fields) {
    return kernel(LossArgs{{fields...}});
  }

  template <auto kernel>
  static auto box_losses(Parameter<Field>... fields) {
    return kernel(LossArgs{{fields...}, "box_losses"});
  }

  template <auto kernel>
  static auto forward(Parameter<Field>... fields, bool extras) {
    return kernel(LossArgs{{fields...}, extras ? "box_losses" : "box_loss"}, extras);
  }

  template <auto kernel>
  static auto backward(const OptionalTensor& grad_loss, const OptionalTensor& grad_l1,
                       const at::Tensor& scale, Parameter<Field>... fields, Wanted wanted) {
    return kernel(IncomingTensors{grad_loss, grad_l1}, scale,
                  LossArgs{{fields...}, grad_l1 ? "box_losses" : "box_loss"}, wanted);
  }
};
using Fields = decltype(std::declval<const LossArgs&>().fields());
using Entries = EntriesFor<Fields>;

/// Calls through the dispatcher.
at::Tensor call_box_loss(const LossArgs& args);
LossesTensors call_box_losses(const LossArgs& args);
ForwardTensors call_box_loss_forward(const LossArgs& args, bool extras);
LossGradientTensors call_box_loss_backward(const IncomingTensors& grads, const at::Tensor& scale,
                                           const LossArgs& args, const Wanted& wanted);

/// The problem without sizes, strides and pointers, of symbolic shapes too. Checks everything: a
/// bad value or shape is a ValueError, a bad dtype a TypeError, mixed devices a RuntimeError.
LossProblem checked(const LossArgs& args, bool extras);

/// Checks backward's additional arguments by what forward writes: it is an operator that anybody
/// may call.
template <class Size>
void check_backward_args(const IncomingTensors& grads, const at::Tensor& scale,
                         const LossArgs& args, const std::array<binding::Output<Size>, 4>& forward,
                         const Wanted& wanted);

/// Checks all of backward's arguments, of symbolic shapes too.
void checked_backward(const IncomingTensors& grads, const at::Tensor& scale, const LossArgs& args,
                      const Wanted& wanted);

/// float64 when either box tensor is, else float32.
at::ScalarType compute_type(const LossArgs& args);

/// Shape of the unreduced loss, of weight and of iou.
std::vector<c10::SymInt> loss_shape(const LossArgs& args);

/// Shape of the reduced loss and of scale: none, or (S).
std::vector<c10::SymInt> reduced_shape(const LossArgs& args);

/// Whether the gradient of pred or target has their strides: if they fill their memory, in any
/// order of dimensions, but not for pairs by index. Otherwise it is contiguous.
bool keeps_strides(const LossArgs& args, const at::Tensor& boxes);

/// Backward's outputs, uninitialized; works on symbolic shapes.
LossGradientTensors empty_gradients(const LossArgs& args, const Wanted& wanted);

/// The composite: the loss in differentiable ATen operators, with the same rules. It serves double
/// backward, forward-mode AD and function transforms.
at::Tensor box_loss_composite(const LossArgs& args);
LossesTensors box_losses_composite(const LossArgs& args);

/// Its gradients, themselves differentiable; undefined where not wanted.
LossGradientTensors differentiable_gradients(const IncomingTensors& grads, const LossArgs& args,
                                             const Wanted& wanted);

/// The private operators by the composite; l1 and iou are undefined without extras.
ForwardTensors composite_forward(const LossArgs& args, bool extras);
LossGradientTensors composite_backward(const IncomingTensors& grads, const LossArgs& args,
                                       const Wanted& wanted);

}  // namespace boxloss::torch_binding
