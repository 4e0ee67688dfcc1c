// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/SymIntArrayRef.h>

#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../common/pair_loss.hpp"
#include "../adapter.hpp"
#include "../operation.hpp"

/// The arguments of losses of pairs as one struct, and its conversion from and to the dispatcher's.
/// `Own` is the losses' description in bindings/common, or the operator that is made from it.
namespace boxloss::torch_binding {

template <class Own>
struct LossArgs : TensorsOf<Own> {
  /// The called function's name, for errors.
  const char* function = Own::kFunction;

  /// Pairs by index: the index that gives them their shape, (P) or (S, P). Null for all others.
  const at::Tensor* index() const {
    return this->pred_index     ? &*this->pred_index
           : this->target_index ? &*this->target_index
                                : nullptr;
  }
};

/// Whether there are l1 and iou, by a second public operator, box_losses.
template <class Own>
constexpr bool kHasExtras = Own::kOutputs.size() > 2;

/// Of symbolic shapes, too.
template <class Own>
using TracedLoss = Converted<Own, c10::SymInt>;

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

template <class Own>
using LossFields = decltype(std::declval<const TensorsOf<Own>&>().fields());

/// The functions that the dispatcher calls, each with the long parameter list; they pass the struct
/// to `kernel`.
template <class Own, class Fields = LossFields<Own>>
struct LossEntries;
template <class Own, class... Field>
struct LossEntries<Own, std::tuple<Field...>> {
  using Args = LossArgs<Own>;

  template <auto kernel>
  static auto loss(Parameter<Field>... fields) {
    return kernel(Args{{fields...}});
  }

  template <auto kernel>
  static auto losses(Parameter<Field>... fields) {
    return kernel(Args{{fields...}, "box_losses"});
  }

  template <auto kernel>
  static auto forward(Parameter<Field>... fields, bool extras) {
    return kernel(Args{{fields...}, extras ? "box_losses" : Own::kFunction}, extras);
  }

  template <auto kernel>
  static auto backward(const OptionalTensor& grad_loss, const OptionalTensor& grad_l1,
                       const at::Tensor& scale, Parameter<Field>... fields, Wanted wanted) {
    return kernel(IncomingTensors{grad_loss, grad_l1}, scale,
                  Args{{fields...}, grad_l1 ? "box_losses" : Own::kFunction}, wanted);
  }

  // Of losses without extras.
  template <auto kernel>
  static std::tuple<at::Tensor, at::Tensor> forward_alone(Parameter<Field>... fields) {
    const auto [loss, scale, l1, iou] = kernel(Args{{fields...}}, false);
    return {loss, scale};
  }

  template <auto kernel>
  static auto backward_alone(const at::Tensor& grad_loss, const at::Tensor& scale,
                             Parameter<Field>... fields, Wanted wanted) {
    return kernel(IncomingTensors{grad_loss, {}}, scale, Args{{fields...}}, wanted);
  }
};

/// Names of operators: "box_loss", "_box_loss_forward", "_box_loss_backward".
template <class Own>
struct LossNames {
  std::string loss = Own::kFunction;
  std::string forward = "_" + loss + "_forward", backward = "_" + loss + "_backward";
};

template <class Type>
auto find_loss_operator(const std::string& name) {
  return find_operator<Type>(("boxloss::" + name).c_str());
}

/// Calls through the dispatcher.
template <class Own>
at::Tensor call_loss(const LossArgs<Own>& args) {
  static const auto op = find_loss_operator<Signature<at::Tensor, std::tuple<>, LossFields<Own>>>(
      LossNames<Own>().loss);
  return call_with(op, args.fields());
}

template <class Own>
LossesTensors call_losses(const LossArgs<Own>& args) {
  static const auto op =
      find_loss_operator<Signature<LossesTensors, std::tuple<>, LossFields<Own>>>("box_losses");
  return call_with(op, args.fields());
}

template <class Own>
ForwardTensors call_forward(const LossArgs<Own>& args, bool extras) {
  if constexpr (kHasExtras<Own>) {
    static const auto op =
        find_loss_operator<Signature<ForwardTensors, std::tuple<>, LossFields<Own>, bool>>(
            LossNames<Own>().forward);
    return call_with(op, args.fields(), extras);
  } else {
    using Outputs = std::tuple<at::Tensor, at::Tensor>;
    static const auto op = find_loss_operator<Signature<Outputs, std::tuple<>, LossFields<Own>>>(
        LossNames<Own>().forward);
    return std::tuple_cat(call_with(op, args.fields()), Outputs());
  }
}

template <class Own>
LossGradientTensors call_backward(const IncomingTensors& grads, const at::Tensor& scale,
                                  const LossArgs<Own>& args, const Wanted& wanted) {
  const auto call = [&](const auto& before) {
    using Before = std::decay_t<decltype(before)>;
    static const auto op =
        find_loss_operator<Signature<LossGradientTensors, Before, LossFields<Own>, Wanted>>(
            LossNames<Own>().backward);
    return call_with(op, std::tuple_cat(before, args.fields()), wanted);
  };
  if constexpr (kHasExtras<Own>) {
    return call(std::tie(grads.loss, grads.l1, scale));
  } else {
    return call(std::tie(*grads.loss, scale));
  }
}

/// What forward writes.
template <class Own, class Described>
auto outputs_of(const Described& arguments, const typename Own::Problem& problem, bool extras) {
  if constexpr (kHasExtras<Own>) {
    return Own::outputs(arguments, problem, extras);
  } else {
    return Own::outputs(arguments, problem);
  }
}

/// The problem without sizes, strides and pointers, of symbolic shapes too. Checks everything: a
/// bad value or shape is a ValueError, a bad dtype a TypeError, mixed devices a RuntimeError.
template <class Own>
typename Own::Problem checked(const LossArgs<Own>& a, bool extras) {
  return with_torch_errors(a.function, [&] {
    return Own::describe(TracedLoss<Own>(a.function, a).arguments(), extras);
  });
}

/// Checks backward's additional arguments by what forward writes: it is an operator that anybody
/// may call.
template <class Own, class Outputs>
void check_backward_args(const IncomingTensors& grads, const at::Tensor& scale,
                         const LossArgs<Own>& a, const Outputs& forward, const Wanted& wanted) {
  using Shape = std::decay_t<decltype(forward[0].shape)>;
  using Size = typename Shape::value_type;
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
  if constexpr (kHasExtras<Own>) {
    if (grads.l1) check("grad_l1", *grads.l1, forward[2], "the shape of the loss");
  }
  check("scale", scale, forward[1], "as forward returned it");
  TORCH_CHECK_VALUE(!wanted[2] || a.weight, a.function,
                    ": wanted[2] asks for the gradient of weight, "
                    "which is not given");
}

/// Checks all of backward's arguments, of symbolic shapes too.
template <class Own>
void checked_backward(const IncomingTensors& grads, const at::Tensor& scale,
                      const LossArgs<Own>& args, const Wanted& wanted) {
  with_torch_errors(args.function, [&] {
    const TracedLoss<Own> converted(args.function, args);
    const auto& arguments = converted.arguments();
    const bool extras = grads.l1.has_value();
    const auto problem = Own::describe(arguments, extras);
    check_backward_args(grads, scale, args, outputs_of<Own>(arguments, problem, extras), wanted);
  });
}

/// Decides by strides alone where possible: a masked tensor's number of boxes is unknown while
/// compiling.
inline bool has_contiguous_strides(const at::Tensor& tensor) {
  c10::SymInt expected = 1;
  for (std::int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (tensor.sym_stride(d) != expected && tensor.sym_size(d) != 1) return false;
    expected *= tensor.sym_size(d);
  }
  return true;
}

/// Whether the gradient of pred or target has their strides: if they fill their memory, in any
/// order of dimensions, but not for pairs by index. Otherwise it is contiguous.
template <class Own>
bool keeps_strides(const LossArgs<Own>& a, const at::Tensor& boxes) {
  return a.index() == nullptr && !has_contiguous_strides(boxes) &&
         boxes.is_non_overlapping_and_dense();
}

/// Backward's outputs, uninitialized; works on symbolic shapes.
template <class Own>
LossGradientTensors empty_gradients(const LossArgs<Own>& a, const Wanted& wanted) {
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

/// float64 when either box tensor is, else float32.
template <class Own>
at::ScalarType compute_type(const LossArgs<Own>& a) {
  const bool is_f64 = a.pred.scalar_type() == at::kDouble || a.target.scalar_type() == at::kDouble;
  return is_f64 ? at::kDouble : at::kFloat;
}

/// Shape of the unreduced loss, of weight and of iou.
template <class Own>
std::vector<c10::SymInt> loss_shape(const LossArgs<Own>& a) {
  return Own::shape_of_rows(TracedLoss<Own>(a.function, a).arguments());
}

/// Shape of the reduced loss and of scale: none, or (S).
template <class Own>
std::vector<c10::SymInt> reduced_shape(const LossArgs<Own>& a) {
  return Own::shape_of_sets(TracedLoss<Own>(a.function, a).arguments());
}

}  // namespace boxloss::torch_binding
