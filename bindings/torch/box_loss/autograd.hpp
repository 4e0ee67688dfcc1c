// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "../adapter.hpp"
#include "../with_gradient.hpp"
#include "composite.hpp"

namespace boxloss::torch_binding {

/// The fused backward, without gradients of its own. Past the Autograd key, whose kernel would pass
/// all arguments boxed.
template <class Own>
LossGradientTensors fused_gradients(const IncomingTensors& grads, const at::Tensor& scale,
                                    const LossArgs<Own>& args, const Wanted& wanted) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return call_backward(grads, scale, args, wanted);
}

/// The fused forward, and the fused backward that recomputes from the inputs and `scale`. Autograd,
/// the profiler and anomaly mode show the name of `Own`.
template <class Own>
struct LossFunction : torch::autograd::Function<Own> {
  static constexpr bool is_traceable = true;
  using AutogradContext = torch::autograd::AutogradContext;
  using Variable = torch::autograd::Variable;
  using variable_list = torch::autograd::variable_list;

  /// The tensors are in the argument list because autograd looks for its inputs there. Returns the
  /// loss or, where an iou is wanted, loss and l1. The iou, which has no gradient, is no output of
  /// the function: compiled autograd takes none that is marked as not differentiable.
  static variable_list forward(AutogradContext* ctx, const Variable&, const Variable&,
                               const OptionalTensor&, const LossArgs<Own>& args, at::Tensor* iou) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [loss, scale, l1, overlaps] = call_forward(args, iou != nullptr);
    ctx->set_materialize_grads(false);
    save(ctx, args, scale);
    if (iou == nullptr) return {loss};
    *iou = std::move(overlaps);
    return {loss, l1};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grad_outputs) {
    const auto incoming = [&](std::size_t i) {
      const bool is_given = i < grad_outputs.size() && grad_outputs[i].defined();
      return is_given ? OptionalTensor(grad_outputs[i]) : std::nullopt;
    };
    const IncomingTensors grads{incoming(0), incoming(1)};
    variable_list gradients(5);  // pred, target, weight, and two that have none
    if (!grads.loss && !grads.l1) return gradients;

    Saved<TensorsOf<Own>> saved(ctx);
    const LossArgs<Own> args{saved.args()};
    const Wanted wanted = {ctx->needs_input_grad(0), ctx->needs_input_grad(1),
                           args.weight && ctx->needs_input_grad(2)};
    const auto [pred, target, weight] = at::GradMode::is_enabled()
                                            ? differentiable_gradients(grads, args, wanted)
                                            : fused_gradients(grads, saved.scale(), args, wanted);
    if (wanted[0]) gradients[0] = pred;
    if (wanted[1]) gradients[1] = target;
    if (wanted[2]) gradients[2] = weight;
    return gradients;
  }
};

template <class Own, class Predicate>
bool any_differentiable(const LossArgs<Own>& args, const Predicate& predicate) {
  return predicate(args.pred) || predicate(args.target) || (args.weight && predicate(*args.weight));
}

template <class Own>
bool needs_gradient(const LossArgs<Own>& args) {
  return at::GradMode::is_enabled() &&
         any_differentiable(args, [](const at::Tensor& t) { return t.requires_grad(); });
}

/// Whether gradients of shared rows must be reproducible, which a GPU's kernel does not guarantee:
/// it adds them in an order that differs from run to run.
template <class Own>
bool has_to_be_deterministic(const LossArgs<Own>& args) {
  if (args.pred.is_cpu() || !at::globalContext().deterministicAlgorithms()) return false;
  const bool adds_up = (args.pred_index && args.pred.requires_grad()) ||
                       (args.target_index && args.target.requires_grad());
  return adds_up && at::GradMode::is_enabled();
}

template <class Own>
bool takes_composite(const LossArgs<Own>& args) {
  const bool has_tangent =
      any_differentiable(args, [](const at::Tensor& t) { return t._fw_grad(0).defined(); });
  return has_tangent || inside_function_transform() || has_to_be_deterministic(args);
}

template <class Own>
at::Tensor loss_autograd(const LossArgs<Own>& args) {
  if (takes_composite(args)) return loss_composite(args);
  if (needs_gradient(args)) {
    return Own::apply(args.pred, args.target, args.weight, args, nullptr)[0];
  }
  // Function::apply would build a node even now; nobody could use it.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return call_loss(args);
}

template <class Own>
LossesTensors losses_autograd(const LossArgs<Own>& args) {
  if (takes_composite(args)) return losses_composite(args);
  if (needs_gradient(args)) {
    at::Tensor iou;
    const auto both = Own::apply(args.pred, args.target, args.weight, args, &iou);
    return {both[0], both[1], iou};
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return call_losses(args);
}

}  // namespace boxloss::torch_binding
