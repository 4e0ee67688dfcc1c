// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "loss.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>

#include <algorithm>
#include <string>

namespace boxloss::torch_binding {
namespace {

using torch::autograd::AutogradContext;

/// Which gradients are asked for, in the order of what a loss is differentiable by.
using Wanted = c10::SmallVector<bool, 3>;

/// Of forward's results the one that an incoming gradient belongs to: the loss, or l1.
constexpr std::size_t kResultOfGrad[] = {0, 2};
constexpr std::size_t kScale = 1;

/// A kernel is called with autograd's dispatch keys excluded; while this lives, they are included
/// again, so that a composite is recorded.
class Recording {
 public:
  Recording() : keys_(with_autograd()), records_(true) {}

 private:
  static c10::impl::LocalDispatchKeySet with_autograd() {
    c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
    keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
    return keys;
  }

  c10::impl::ForceDispatchKeyGuard keys_;
  at::AutoGradMode records_;
};

/// Compiled autograd takes no lists among what is saved.
c10::IValue hashable(const c10::IValue& option) {
  return option.isList() ? c10::ivalue::Tuple::create(option.toListRef().vec()) : option;
}
c10::IValue from_hashable(const c10::IValue& saved) {
  if (!saved.isTuple()) return saved;
  c10::List<double> numbers;
  for (const c10::IValue& each : saved.toTupleRef().elements()) numbers.push_back(each.toDouble());
  return numbers;
}

variable_list popped(Stack& stack, std::size_t count) {
  variable_list tensors;
  tensors.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    tensors.push_back(std::move(torch::jit::peek(stack, i, count)).toTensor());
  }
  torch::jit::drop(stack, count);
  return tensors;
}

/// The composite's gradients, undefined where they are not wanted. Of incoming ones those that are
/// not defined are left out.
variable_list differentiate(const LossOperator& loss, Stack& arguments, const variable_list& grads,
                            const Wanted& wanted, bool creates_graph) {
  const std::vector<std::size_t>& places = loss.forward.differentiable;
  variable_list gradients(places.size()), inputs, outputs, by_outputs;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (wanted[i]) inputs.push_back(arguments[places[i]].toTensor());
  }
  if (inputs.empty()) return gradients;
  const variable_list results = loss.composite(loss.forward, arguments);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    outputs.push_back(results[kResultOfGrad[i]]);
    by_outputs.push_back(grads[i]);
  }
  const variable_list found = torch::autograd::grad(outputs, inputs, by_outputs,
                                                    /*retain_graph=*/std::nullopt, creates_graph);
  auto next = found.begin();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (wanted[i]) gradients[i] = *next++;
  }
  return gradients;
}

/// Forward's results, or the public operator's, in ATen operators.
void run_composite(const LossOperator& loss, Stack& stack, bool drops_scale) {
  Stack arguments(stack.end() - loss.forward.count, stack.end());
  variable_list results = loss.composite(loss.forward, arguments);
  torch::jit::drop(stack, loss.forward.count);
  if (drops_scale) results.erase(results.begin() + kScale);
  stack.insert(stack.end(), results.begin(), results.end());
}

void forward_kernel(const Operator& op, Stack& stack) {
  if (!aten_is_chosen()) return op.run(op, stack, {});
  run_composite(*op.loss, stack, op.drops_scale);
  for (auto each = stack.end() - op.results.size(); each != stack.end(); ++each) {
    *each = each->toTensor().contiguous();
  }
}

void backward_kernel(const Operator& op, Stack& stack) {
  if (!aten_is_chosen()) return op.run(op, stack, {});
  const Stack all(stack.end() - op.count, stack.end());
  op.meta(op, stack);  // with memory: it checks, too
  const variable_list results = popped(stack, op.results.size());

  const std::size_t flags = results.size() > 1 ? results.size() : 0;
  variable_list grads(op.first - flags - 1);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (all[i].isTensor()) grads[i] = all[i].toTensor();
  }
  Wanted wanted(results.size(), true);
  for (std::size_t i = 0; i < flags; ++i) wanted[i] = all[grads.size() + 1 + i].toBool();

  const Recording recording;
  Stack arguments(all.begin() + static_cast<std::ptrdiff_t>(op.first), all.end());
  for (std::size_t i = 0; i < results.size(); ++i) {
    c10::IValue& input = arguments[op.loss->forward.differentiable[i]];
    if (input.isTensor()) input = input.toTensor().detach().requires_grad_(wanted[i]);
  }
  const variable_list found =
      differentiate(*op.loss, arguments, grads, wanted, /*creates_graph=*/false);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (wanted[i]) results[i].copy_(found[i]);
    stack.emplace_back(results[i]);
  }
}

void autograd_kernel(const Operator& op, c10::DispatchKeySet keys, Stack& stack) {
  const LossOperator& loss = *op.loss;
  const c10::IValue* const arguments = op.arguments(stack);
  bool has_tangent = false, requires_grad = false;
  for (const std::size_t place : op.differentiable) {
    if (!arguments[place].isTensor()) continue;
    const at::Tensor& input = arguments[place].toTensor();
    has_tangent = has_tangent || input._fw_grad(0).defined();
    requires_grad = requires_grad || input.requires_grad();
  }
  const bool needs_composite = loss.needs_composite != nullptr && loss.needs_composite(arguments);
  if (has_tangent || inside_function_transform() || needs_composite) {
    return run_composite(loss, stack, /*drops_scale=*/true);
  }
  if (!requires_grad || !at::GradMode::is_enabled()) {
    // The autograd function would build a node even now; nobody could use it.
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return pass_autograd(op, keys, stack);
  }
  c10::SmallVector<at::Tensor, 3> inputs;
  for (const std::size_t place : op.differentiable) {
    if (arguments[place].isTensor()) inputs.push_back(arguments[place].toTensor());
  }
  const variable_list recorded = loss.record(inputs, stack);
  stack.insert(stack.end() - (op.results.size() - recorded.size()), recorded.begin(),
               recorded.end());
}

/// A loss' three operators.
void define_loss(torch::Library& m, LossOperator& loss) {
  loss.forward.kernel = loss.own.kernel = forward_kernel;
  loss.backward.kernel = backward_kernel;
  loss.own.drops_scale = true;
  loss.own.results.erase(loss.own.results.begin() + kScale);
  for (Operator* const each : {&loss.forward, &loss.backward, &loss.own}) {
    each->loss = &loss;
    // needs_exact_strides: gradients have the strides of their tensors, so compiled graphs must
    // pass these as eager code does.
    define(m, *each, {at::Tag::needs_exact_strides});
  }
  for (const Operator* const each : {&loss.forward, &loss.backward}) {
    m.impl(each->name, torch::dispatch(c10::DispatchKey::Autograd,
                                       torch::autograd::autogradNotImplementedFallback()));
  }
  implement(m, loss.own, c10::DispatchKey::Autograd, autograd_kernel);
  implement(m, loss.own, c10::DispatchKey::FuncTorchBatchedDecomposition,
            [](const Operator& own, c10::DispatchKeySet, Stack& stack) {
              run_composite(*own.loss, stack, /*drops_scale=*/true);
            });
}

}  // namespace

/// Keeps the arguments and scale for backward: the tensors, and beside the options a bit for each
/// argument that is one.
variable_list run_forward(AutogradContext* context, const LossOperator& loss, Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const Operator& op = loss.forward;
  variable_list tensors;
  std::vector<c10::IValue> options;
  tensors.reserve(5);
  options.reserve(op.count + 1);
  std::int64_t is_tensor = 0;
  for (std::size_t i = 0; i < op.count; ++i) {
    const c10::IValue& each = op.arguments(stack)[i];
    if (each.isTensor()) {
      tensors.push_back(each.toTensor());
      is_tensor |= std::int64_t(1) << i;
    }
    options.push_back(each.isTensor() ? c10::IValue() : hashable(each));
  }
  options.emplace_back(is_tensor);
  op.handle->callBoxed(stack);
  variable_list results = popped(stack, op.results.size());
  tensors.push_back(std::move(results[kScale]));
  results.erase(results.begin() + kScale);
  context->set_materialize_grads(false);
  context->save_for_backward(std::move(tensors));
  context->saved_data["options"] = c10::ivalue::Tuple::create(std::move(options));
  // The iou, which has no gradient, is no result of the function: compiled autograd takes none that
  // is marked as not differentiable.
  constexpr std::size_t kLossAndL1 = 2;
  if (results.size() > kLossAndL1) {
    stack.emplace_back(std::move(results.back()));
    results.pop_back();
  }
  return results;
}

variable_list run_backward(AutogradContext* context, const LossOperator& loss,
                           const variable_list& grads) {
  const auto& options = context->saved_data.at("options").toTupleRef().elements();
  const auto is_tensor = [bits = options.back().toInt()](std::size_t place) {
    return (bits >> place & 1) != 0;
  };
  Wanted wanted;
  c10::SmallVector<std::size_t, 3> inputs;  // which of what the loss is differentiable by are given
  const bool is_alone = loss.forward.differentiable.size() == 1;
  for (std::size_t i = 0; i < loss.forward.differentiable.size(); ++i) {
    const bool is_given = is_tensor(loss.forward.differentiable[i]);
    wanted.push_back(is_given && (is_alone || context->needs_input_grad(inputs.size())));
    if (is_given) inputs.push_back(i);
  }
  variable_list gradients(inputs.size() + 1);  // and for the stack, which has none
  const auto is_defined = [](const at::Tensor& grad) { return grad.defined(); };
  if (std::none_of(grads.begin(), grads.end(), is_defined)) return gradients;

  const variable_list tensors = context->get_saved_variables();
  Stack stack;  // of the private operator
  stack.reserve(loss.backward.count);
  for (const at::Tensor& each : grads) stack.push_back(each.defined() ? each : c10::IValue());
  stack.emplace_back(tensors.back());
  if (wanted.size() > 1) stack.insert(stack.end(), wanted.begin(), wanted.end());
  auto next = tensors.begin();
  for (std::size_t i = 0; i < loss.forward.count; ++i) {
    stack.push_back(is_tensor(i) ? *next++ : from_hashable(options[i]));
  }
  variable_list found;
  if (at::GradMode::is_enabled()) {
    stack.erase(stack.begin(), stack.end() - loss.forward.count);
    // By aliases, since the inputs may depend on each other, and each path must be counted once;
    // and hooks of the inputs would run here, too.
    for (const std::size_t place : loss.forward.differentiable) {
      if (stack[place].isTensor()) stack[place] = at::alias(stack[place].toTensor());
    }
    found = differentiate(loss, stack, grads, wanted, /*creates_graph=*/true);
  } else {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;  // whose key would do more
    loss.backward.handle->callBoxed(stack);
    found = popped(stack, wanted.size());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (wanted[inputs[i]]) gradients[i] = std::move(found[inputs[i]]);
  }
  return gradients;
}

template <class Node>
variable_list NodeOf<Node>::record(at::TensorList inputs, Stack& stack) {
  return Node::apply(inputs, stack);
}
template variable_list NodeOf<BoxLoss>::record(at::TensorList, Stack&);
template variable_list NodeOf<BoxLosses>::record(at::TensorList, Stack&);
template variable_list NodeOf<RotatedBoxLoss>::record(at::TensorList, Stack&);
template variable_list NodeOf<ClassLoss>::record(at::TensorList, Stack&);
template variable_list NodeOf<DistributionLoss>::record(at::TensorList, Stack&);

at::Tensor rows_or_none(const at::Tensor& list, double none, const at::Tensor& row) {
  auto shape = list.sym_sizes().vec();
  shape[0] = 1;
  return at::cat({list, at::full_symint(shape, none, list.options())}).index({row});
}

at::Tensor sums_of_sets(const at::Tensor& logits, const at::Tensor& values) {
  return logits.dim() == 4 ? values.flatten(1).sum(1) : values.sum();
}

}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss::torch_binding;
  for (LossOperator* const each : {&BoxLoss::loss(), &BoxLosses::loss(), &RotatedBoxLoss::loss(),
                                   &ClassLoss::loss(), &DistributionLoss::loss()}) {
    define_loss(m, *each);
  }
}
