// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <boxloss/box_loss.hpp>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "checks.hpp"

/// The operators' arguments as one struct, and the way between it and the dispatcher. The long
/// parameter list stands here twice, as members and in fields(), and in schema.cpp.
namespace boxloss::torch_binding {

struct LossArgs {
  at::Tensor pred;
  at::Tensor target;
  std::string_view loss;
  OptionalTensor weight;
  OptionalTensor normalizer;
  OptionalTensor lengths;
  OptionalTensor mask;
  OptionalTensor offsets;
  bool zero_padded;
  std::string_view pred_format;
  std::string_view target_format;
  std::string_view reduction;
  double eps;
  std::string_view eps_mode;
  OptionalTensor pred_index;
  OptionalTensor target_index;

  /// What errors say was called.
  const char* function = "box_loss";

  /// The operators' parameters, in the order of the schema.
  auto fields() const {
    return std::tie(pred, target, loss, weight, normalizer, lengths, mask, offsets, zero_padded,
                    pred_format, target_format, reduction, eps, eps_mode, pred_index, target_index);
  }

  /// Pairs by index: what gives them their shape, (P) or (S, P). Null for all others.
  const at::Tensor* index() const {
    return pred_index ? &*pred_index : target_index ? &*target_index : nullptr;
  }
};

/// loss, scale, l1, iou; the last two have no elements without extras.
using ForwardTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// loss, l1, iou.
using LossesTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// The gradients that come in, for loss and l1; one that is none is left out.
struct IncomingTensors {
  OptionalTensor loss, l1;
};

/// pred, target, weight: which gradients backward computes.
using Wanted = std::array<bool, 3>;

/// The gradients of pred, target and weight; without elements where not wanted.
using LossGradientTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// A field's type as the dispatcher passes it.
template <class Field>
using Parameter = std::conditional_t<std::is_same_v<Field, const at::Tensor&> ||
                                         std::is_same_v<Field, const OptionalTensor&>,
                                     Field, std::decay_t<Field>>;

/// The functions that the dispatcher calls, each with the long parameter list; they call `kernel`
/// with the struct.
template <class Fields>
struct EntriesFor;
template <class Pred, class Target, class Word, class... Others>
struct EntriesFor<std::tuple<Pred, Target, Word, Others...>> {
  template <auto kernel>
  static auto box_loss(Parameter<Pred> pred, Parameter<Target> target, Parameter<Word> loss,
                       Parameter<Others>... others) {
    return kernel(LossArgs{pred, target, loss, others...});
  }

  template <auto kernel>
  static auto box_losses(Parameter<Pred> pred, Parameter<Target> target, Parameter<Word> loss,
                         Parameter<Others>... others) {
    LossArgs args{pred, target, loss, others...};
    args.function = "box_losses";
    return kernel(args);
  }

  template <auto kernel>
  static auto forward(Parameter<Pred> pred, Parameter<Target> target, Parameter<Word> loss,
                      Parameter<Others>... others, bool extras) {
    LossArgs args{pred, target, loss, others...};
    if (extras) args.function = "box_losses";
    return kernel(args, extras);
  }

  template <auto kernel>
  static auto backward(const OptionalTensor& grad_loss, const OptionalTensor& grad_l1,
                       const at::Tensor& scale, Parameter<Pred> pred, Parameter<Target> target,
                       Parameter<Word> loss, Parameter<Others>... others, Wanted wanted) {
    LossArgs args{pred, target, loss, others...};
    if (grad_l1) args.function = "box_losses";
    return kernel(IncomingTensors{grad_loss, grad_l1}, scale, args, wanted);
  }

  /// Without the word.
  template <auto kernel>
  static auto giou_loss(Parameter<Pred> pred, Parameter<Target> target,
                        Parameter<Others>... others) {
    LossArgs args{pred, target, "giou", others...};
    args.function = "giou_loss";
    return kernel(args);
  }
};
using Fields = decltype(std::declval<const LossArgs&>().fields());
using Entries = EntriesFor<Fields>;

/// Through the dispatcher.
at::Tensor call_box_loss(const LossArgs& args);
LossesTensors call_box_losses(const LossArgs& args);
ForwardTensors call_box_loss_forward(const LossArgs& args, bool extras);
LossGradientTensors call_box_loss_backward(const IncomingTensors& grads, const at::Tensor& scale,
                                           const LossArgs& args, const Wanted& wanted);

/// The string and bool arguments, as core wants them.
struct LossOptions {
  Loss loss;
  BoxFormat pred_format, target_format;
  Pairing::Kind pairing;
  Reduction reduction;
  EpsMode eps_mode;
};

/// Works on symbolic shapes. A bad value or shape is a ValueError, a bad dtype a TypeError, mixed
/// devices a RuntimeError; each names the argument.
LossOptions check_args(const LossArgs& args);

/// What l1 asks for besides: a ValueError where the formats differ.
void check_l1(const LossArgs& args, const LossOptions& options);

/// Checks what backward takes besides: it is an operator that anybody may call.
void check_backward_args(const IncomingTensors& grads, const at::Tensor& scale,
                         const LossArgs& args, const LossOptions& options, const Wanted& wanted);

/// float64 when either box tensor is, else float32.
at::ScalarType compute_type(const LossArgs& args);

/// Shape of the unreduced loss, of weight and of iou.
std::vector<c10::SymInt> loss_shape(const LossArgs& args);

/// Shape of the reduced loss and of scale: none, or (S).
std::vector<c10::SymInt> reduced_shape(const LossArgs& args);

/// Has the gradient of pred or target their strides? Where they fill their memory, in any order of
/// dimensions; but not for pairs by index. Else it is contiguous.
bool keeps_strides(const LossArgs& args, const at::Tensor& boxes);

/// What backward gives, yet to be written; works on symbolic shapes.
LossGradientTensors empty_gradients(const LossArgs& args, const Wanted& wanted);

/// The loss written in differentiable ATen operators, with the same rules: what double backward,
/// forward-mode AD and function transforms go through.
at::Tensor box_loss_composite(const LossArgs& args);
LossesTensors box_losses_composite(const LossArgs& args);

/// Its gradients, to be differentiated in their turn; undefined where not wanted.
LossGradientTensors differentiable_gradients(const IncomingTensors& grads, const LossArgs& args,
                                             const Wanted& wanted);

/// The private operators by it; l1 and iou are undefined without extras.
ForwardTensors composite_forward(const LossArgs& args, bool extras);
LossGradientTensors composite_backward(const IncomingTensors& grads, const LossArgs& args,
                                       const Wanted& wanted);

}  // namespace boxloss::torch_binding
