// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/FuncTorchTLS.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "loss_args.hpp"

namespace boxloss::torch_binding {
namespace {

using c10::IValue;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Keeps the arguments, and `scale` behind them, for backward.
void save(AutogradContext* ctx, const LossArgs& args, const at::Tensor& scale) {
  variable_list tensors;
  std::vector<IValue> options;
  const auto keep = [&](const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, at::Tensor>) {
      tensors.push_back(field);
    } else if constexpr (std::is_same_v<Field, OptionalTensor>) {
      tensors.push_back(field.value_or(at::Tensor()));
    } else if constexpr (std::is_same_v<Field, std::string_view>) {
      options.emplace_back(std::string(field));
    } else {
      options.emplace_back(field);
    }
  };
  std::apply([&](const auto&... fields) { (keep(fields), ...); }, args.fields());
  tensors.push_back(scale);
  ctx->save_for_backward(std::move(tensors));
  ctx->saved_data["options"] = c10::ivalue::Tuple::create(std::move(options));
}

/// What `save` kept, field by field in the same order.
class Saved {
 public:
  explicit Saved(AutogradContext* ctx)
      : tensors_(ctx->get_saved_variables()),
        tensor_(tensors_.begin()),
        options_(ctx->saved_data.at("options").toTupleRef().elements()),
        option_(options_.begin()) {}

  LossArgs args() { return make(static_cast<Fields*>(nullptr)); }
  const at::Tensor& scale() const { return tensors_.back(); }

 private:
  template <class... Field>
  LossArgs make(std::tuple<Field...>*) {
    return {next<std::decay_t<Field>>()...};
  }

  template <class Field>
  Field next() {
    if constexpr (std::is_same_v<Field, at::Tensor>) {
      return *tensor_++;
    } else if constexpr (std::is_same_v<Field, OptionalTensor>) {
      const Variable& tensor = *tensor_++;
      return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
    } else if constexpr (std::is_same_v<Field, std::string_view>) {
      return (option_++)->toStringView();
    } else {
      return (option_++)->to<Field>();
    }
  }

  variable_list tensors_;
  variable_list::const_iterator tensor_;
  const c10::ivalue::TupleElements& options_;
  decltype(options_.begin()) option_;
};

/// The fused forward, and the fused backward that recomputes from the inputs and `scale`.
struct BoxLossFunction : torch::autograd::Function<BoxLossFunction> {
  static constexpr bool is_traceable = true;

  /// The tensors stand in the argument list because autograd looks for its inputs there.
  static Variable forward(AutogradContext* ctx, const Variable&, const Variable&,
                          const OptionalTensor&, const LossArgs& args) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [loss, scale] = call_box_loss_forward(args);
    ctx->set_materialize_grads(false);
    save(ctx, args, scale);
    return loss;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grad_outputs) {
    const Variable& grad_loss = grad_outputs[0];
    variable_list gradients(4);  // pred, target, weight, and the struct, which has none
    if (!grad_loss.defined()) return gradients;

    Saved saved(ctx);
    const LossArgs args = saved.args();
    const Wanted wanted = {ctx->needs_input_grad(0), ctx->needs_input_grad(1),
                           args.weight && ctx->needs_input_grad(2)};
    const bool creates_graph = at::GradMode::is_enabled();
    const auto [pred, target, weight] =
        creates_graph ? differentiable_gradients(grad_loss, args, wanted)
                      : call_box_loss_backward(grad_loss, saved.scale(), args, wanted);
    if (wanted[0]) gradients[0] = pred;
    if (wanted[1]) gradients[1] = target;
    if (wanted[2]) gradients[2] = weight;
    return gradients;
  }

 private:
  /// For double backward: the composite formula, differentiated by autograd itself. With respect to
  /// aliases, since the inputs may depend on each other, and each way is to be counted once.
  static LossGradientTensors differentiable_gradients(const Variable& grad_loss,
                                                      const LossArgs& args, const Wanted& wanted) {
    LossArgs aliases = args;
    aliases.pred = at::alias(args.pred);
    aliases.target = at::alias(args.target);
    if (args.weight) aliases.weight = at::alias(*args.weight);
    variable_list inputs;
    if (wanted[0]) inputs.push_back(aliases.pred);
    if (wanted[1]) inputs.push_back(aliases.target);
    if (wanted[2]) inputs.push_back(*aliases.weight);
    const variable_list found =
        torch::autograd::grad({box_loss_composite(aliases)}, inputs, {grad_loss},
                              /*retain_graph=*/std::nullopt, /*create_graph=*/true);
    auto next = found.begin();
    const auto gradient = [&](bool is_wanted) { return is_wanted ? *next++ : Variable(); };
    const Variable pred = gradient(wanted[0]), target = gradient(wanted[1]);
    return {pred, target, gradient(wanted[2])};
  }
};

template <class Predicate>
bool any_differentiable(const LossArgs& args, const Predicate& predicate) {
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

at::Tensor box_loss_autograd(const LossArgs& args) {
  const bool has_tangent =
      any_differentiable(args, [](const at::Tensor& t) { return t._fw_grad(0).defined(); });
  if (has_tangent || inside_function_transform()) return box_loss_composite(args);

  const bool needs_gradient =
      at::GradMode::is_enabled() &&
      any_differentiable(args, [](const at::Tensor& t) { return t.requires_grad(); });
  if (needs_gradient) {
    return BoxLossFunction::apply(args.pred, args.target, args.weight, args);
  }
  // Function::apply would build a node even now; nobody could use it.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return call_box_loss(args);
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_IMPL(boxloss, Autograd, m) {
  using namespace boxloss::torch_binding;
  m.impl("box_loss", Entries::box_loss<box_loss_autograd>);
  m.impl("_box_loss_forward", torch::autograd::autogradNotImplementedFallback());
  m.impl("_box_loss_backward", torch::autograd::autogradNotImplementedFallback());
}
