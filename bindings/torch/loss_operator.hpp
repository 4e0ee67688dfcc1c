// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <string>
#include <tuple>
#include <utility>

#include "operation.hpp"
#include "with_gradient.hpp"

/// An operator with a gradient by its first tensor, logits, and by nothing else.
namespace boxloss::torch_binding {

/// It calls two private operators, which compiled graphs keep whole: Operation and its gradient.
/// `Own`, whose name autograd, the profiler and anomaly mode show, says
///   laid_out(args)           the arguments, with logits as the kernels take them
///   composite(args)          loss and scale in differentiable ATen operators. It serves double
///                            backward, forward-mode AD and function transforms
///   backward_of(args, grad, scale)  calls Gradient's operator
///   as_written(all, found)   a gradient of logits' shape, as Gradient's operator writes it
template <class Own, class Operation, class Gradient>
struct LossOperator : torch::autograd::Function<Own> {
  static constexpr bool is_traceable = true;
  using Forward = OperatorOf<Operation>;
  using Backward = OperatorOf<Gradient>;
  using Args = TensorsOf<Operation>;
  using AutogradContext = torch::autograd::AutogradContext;
  using variable_list = torch::autograd::variable_list;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor&, const Args& args) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [loss, scale] = Forward::call(args);
    save(ctx, args, scale);
    return loss;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    Saved<Args> saved(ctx);
    Args args = saved.args();
    if (!at::GradMode::is_enabled()) {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      return {Own::backward_of(args, grads[0], saved.scale()), at::Tensor()};
    }
    args.logits = at::alias(args.logits);  // hooks of logits would run here, too
    return {composite_gradient(args, grads[0], /*creates_graph=*/true), at::Tensor()};
  }

  /// Through the dispatcher.
  static at::Tensor call(const Args& args) {
    static const auto op = find_operator<Signature<at::Tensor, std::tuple<>, Fields>>(
        ("boxloss::" + std::string(name())).c_str());
    return call_with(op, args.fields());
  }

  static void define(torch::Library& m) {
    using Entry = EntryOf<Args>;
    const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
    Forward::template define<run_forward>(m, tags);
    Backward::template define<run_backward>(m, tags);
    m.def((name() + ("(" + parameters<Operation>() + ") -> Tensor")).c_str(), tags);
    implement_on_devices(m, name(), Entry::template call<without_gradient>);
    const auto implement = [&](c10::DispatchKey key, auto* kernel) {
      m.impl(name(), torch::dispatch(key, kernel));
    };
    implement(c10::DispatchKey::Meta, Entry::template call<without_gradient>);
    implement(c10::DispatchKey::Autograd, Entry::template call<with_gradient>);
    implement(c10::DispatchKey::FuncTorchBatchedDecomposition, Entry::template call<composite>);
    for (const char* const each : {Operation::kOperator, Gradient::kOperator}) {
      m.impl(each, torch::dispatch(c10::DispatchKey::Autograd,
                                   torch::autograd::autogradNotImplementedFallback()));
    }
  }

 private:
  using Fields = typename Forward::Fields;
  static const char* name() { return Operation::kFunction; }

  static at::Tensor composite(const Args& args) { return std::get<0>(Own::composite(args)); }

  static at::Tensor composite_gradient(const Args& args, const at::Tensor& grad,
                                       bool creates_graph) {
    return torch::autograd::grad({composite(args)}, {args.logits}, {grad},
                                 /*retain_graph=*/std::nullopt, creates_graph)[0];
  }

  static typename Forward::Result run_forward(const Args& args) {
    return aten_is_chosen() ? Own::composite(args) : Forward::run(args);
  }

  static at::Tensor run_backward(const typename Backward::Tensors& all) {
    if (!aten_is_chosen()) return Backward::run(all);
    const at::Tensor result = Backward::meta(all);  // with memory: it checks, too
    constexpr std::size_t kOwn = std::tuple_size_v<typename Backward::Fields> -
                                 std::tuple_size_v<Fields>;  // before those of the loss
    Args args = fields_from<kOwn>(all, std::make_index_sequence<std::tuple_size_v<Fields>>());
    const Recording recording;
    args.logits = all.logits.detach().requires_grad_();
    const at::Tensor found = composite_gradient(args, all.grad, /*creates_graph=*/false);
    const at::NoGradGuard no_grad;
    return result.copy_(Own::as_written(all, found));
  }

  template <std::size_t first, std::size_t... i>
  static Args fields_from(const typename Backward::Tensors& all, std::index_sequence<i...>) {
    const auto fields = all.fields();
    return {std::get<first + i>(fields)...};
  }

  static at::Tensor without_gradient(const Args& args) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return std::get<0>(Forward::call(Own::laid_out(args)));
  }

  static at::Tensor with_gradient(const Args& args) {
    const bool has_tangent = args.logits._fw_grad(0).defined();
    if (has_tangent || inside_function_transform()) return composite(args);
    if (!args.logits.requires_grad() || !at::GradMode::is_enabled()) return without_gradient(args);
    const Args own = Own::laid_out(args);
    return LossOperator::apply(own.logits, own);
  }
};

}  // namespace boxloss::torch_binding
