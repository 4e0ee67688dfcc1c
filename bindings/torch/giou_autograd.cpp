// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/FuncTorchTLS.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "giou_args.hpp"

namespace boxloss::torch_binding {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<at::Tensor>;

OptionalTensor optional(const Variable& saved) {
  return saved.defined() ? OptionalTensor(saved) : std::nullopt;
}

Variable or_undefined(const OptionalTensor& tensor) { return tensor.value_or(Variable()); }

/// The fused forward, and the fused backward that recomputes from the inputs and `scale`.
struct GiouLossFunction : torch::autograd::Function<GiouLossFunction> {
  static constexpr bool is_traceable = true;

  /// The tensors stand in the argument list because autograd looks for its inputs there.
  static Variable forward(AutogradContext* ctx, const Variable& pred, const Variable& target,
                          const OptionalTensor& weight, const GiouLossArgs& args) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [loss, scale] = call_giou_loss_forward(args);
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({pred, target, or_undefined(weight), or_undefined(args.normalizer),
                            or_undefined(args.lengths), or_undefined(args.mask),
                            or_undefined(args.offsets), scale});
    ctx->saved_data["zero_padded"] = args.zero_padded;
    ctx->saved_data["pred_format"] = std::string(args.pred_format);
    ctx->saved_data["target_format"] = std::string(args.target_format);
    ctx->saved_data["reduction"] = std::string(args.reduction);
    ctx->saved_data["eps"] = args.eps;
    ctx->saved_data["eps_mode"] = std::string(args.eps_mode);
    return loss;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grad_outputs) {
    const Variable& grad_loss = grad_outputs[0];
    if (!grad_loss.defined()) return {Variable(), Variable(), Variable(), Variable()};

    const variable_list saved = ctx->get_saved_variables();
    const OptionalTensor weight = optional(saved[2]), normalizer = optional(saved[3]),
                         lengths = optional(saved[4]), mask = optional(saved[5]),
                         offsets = optional(saved[6]);
    auto& data = ctx->saved_data;
    const GiouLossArgs args{saved[0],
                            saved[1],
                            weight,
                            normalizer,
                            lengths,
                            mask,
                            offsets,
                            data["zero_padded"].toBool(),
                            data["pred_format"].toStringView(),
                            data["target_format"].toStringView(),
                            data["reduction"].toStringView(),
                            data["eps"].toDouble(),
                            data["eps_mode"].toStringView()};
    const Wanted wanted = {ctx->needs_input_grad(0), ctx->needs_input_grad(1),
                           weight && ctx->needs_input_grad(2)};
    const bool creates_graph = at::GradMode::is_enabled();
    const variable_list found = creates_graph
                                    ? differentiable_gradients(grad_loss, args, wanted)
                                    : call_giou_loss_backward(grad_loss, saved[7], args, wanted);
    variable_list gradients(4);  // pred, target, weight, and the struct, which has none
    std::size_t next = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i]) gradients[i] = found[next++];
    }
    return gradients;
  }

 private:
  /// For double backward: the composite formula, differentiated by autograd itself. With respect to
  /// aliases, since the inputs may depend on each other, and each way is to be counted once.
  static variable_list differentiable_gradients(const Variable& grad_loss, const GiouLossArgs& args,
                                                const Wanted& wanted) {
    const Variable pred = at::alias(args.pred);
    const Variable target = at::alias(args.target);
    const OptionalTensor weight =
        args.weight ? OptionalTensor(at::alias(*args.weight)) : std::nullopt;
    const GiouLossArgs aliases{
        pred,           target,       weight,           args.normalizer,  args.lengths,
        args.mask,      args.offsets, args.zero_padded, args.pred_format, args.target_format,
        args.reduction, args.eps,     args.eps_mode};
    variable_list inputs;
    if (wanted[0]) inputs.push_back(pred);
    if (wanted[1]) inputs.push_back(target);
    if (wanted[2]) inputs.push_back(*weight);
    return torch::autograd::grad({giou_loss_composite(aliases)}, inputs, {grad_loss},
                                 /*retain_graph=*/std::nullopt, /*create_graph=*/true);
  }
};

template <class Predicate>
bool any_differentiable(const GiouLossArgs& args, const Predicate& predicate) {
  return predicate(args.pred) || predicate(args.target) || (args.weight && predicate(*args.weight));
}

/// Inside vmap, grad and their like a C++ autograd Function is refused.
bool inside_function_transform() {
  const auto& functorch = at::functorch::functorchTLSAccessor();
  if (!functorch) return false;
  try {
    functorch->checkSupportsCppAutogradFunction();
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

at::Tensor giou_loss_autograd(const GiouLossArgs& args) {
  const bool has_tangent =
      any_differentiable(args, [](const at::Tensor& t) { return t._fw_grad(0).defined(); });
  if (has_tangent || inside_function_transform()) return giou_loss_composite(args);

  const bool needs_gradient =
      at::GradMode::is_enabled() &&
      any_differentiable(args, [](const at::Tensor& t) { return t.requires_grad(); });
  if (needs_gradient) {
    return GiouLossFunction::apply(args.pred, args.target, args.weight, args);
  }
  // Function::apply would build a node even now; nobody could use it.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return call_giou_loss(args);
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_IMPL(boxloss, Autograd, m) {
  using namespace boxloss::torch_binding;
  m.impl("giou_loss", giou_loss_entry<giou_loss_autograd>);
  m.impl("_giou_loss_forward", torch::autograd::autogradNotImplementedFallback());
  m.impl("_giou_loss_backward", torch::autograd::autogradNotImplementedFallback());
}
