// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../common/arguments.hpp"
#include "adapter.hpp"

/// What lists of parameters become here: the kinds, the text of schemas, and the types of functions
/// that the dispatcher calls.
namespace boxloss::torch_binding {

using OptionalTensor = std::optional<at::Tensor>;

/// The kinds of options.hpp.
struct TensorKinds : binding::PlainKinds {
  using Strided = at::Tensor;
  using Packed = at::Tensor;
  using OptionalStrided = OptionalTensor;
  using OptionalPacked = OptionalTensor;
};

/// As schemas write them.
template <class Kind>
constexpr const char* schema_type() {
  if constexpr (std::is_same_v<Kind, at::Tensor>) return "Tensor";
  if constexpr (std::is_same_v<Kind, OptionalTensor>) return "Tensor?";
  if constexpr (std::is_same_v<Kind, bool>) return "bool";
  if constexpr (std::is_same_v<Kind, std::string_view>) return "str";
  if constexpr (std::is_same_v<Kind, double>) return "float";
  if constexpr (std::is_same_v<Kind, std::optional<double>>) return "float?";
  if constexpr (std::is_same_v<Kind, std::vector<double>>) return "float[]";
  if constexpr (std::is_same_v<Kind, std::int64_t>) return "int";
  if constexpr (std::is_same_v<Kind, std::optional<std::int64_t>>) return "int?";
}

/// "Tensor pred, Tensor target, str loss='giou', …", or without defaults.
template <class Operation>
std::string parameters(bool has_defaults = true) {
  std::string text;
  const binding::Parameter* row = Operation::kParameters;
  const auto write = [&](const char* type) {
    text += (text.empty() ? "" : ", ") + std::string(type) + " " + row->name;
    if (has_defaults && *row->standard != '\0') text += std::string("=") + row->standard;
    ++row;
  };
  typename Operation::template Arguments<TensorKinds> tensors = {};
  std::apply([&](auto&... field) { (write(schema_type<std::decay_t<decltype(field)>>()), ...); },
             tensors.fields());
  return text;
}

/// A field's type as the dispatcher passes it: tensors by reference.
template <class Field>
using Parameter = std::conditional_t<std::is_same_v<std::decay_t<Field>, at::Tensor> ||
                                         std::is_same_v<std::decay_t<Field>, OptionalTensor>,
                                     const std::decay_t<Field>&, std::decay_t<Field>>;

/// An operator with parameters before and after a tuple of fields.
template <class Result, class Before, class Fields, class... After>
struct SignatureOf;
template <class Result, class... Before, class... Fields, class... After>
struct SignatureOf<Result, std::tuple<Before...>, std::tuple<Fields...>, After...> {
  using Type = Result(Before..., Parameter<Fields>..., After...);
};
template <class Result, class Before, class Fields, class... After>
using Signature = typename SignatureOf<Result, Before, Fields, After...>::Type;

template <class Type>
c10::TypedOperatorHandle<Type> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Type>();
}

/// A function that the dispatcher calls with the fields of `Args` one by one; it passes the struct
/// to `kernel`.
template <class Args, class Fields = decltype(std::declval<const Args&>().fields())>
struct EntryOf;
template <class Args, class... Fields>
struct EntryOf<Args, std::tuple<Fields...>> {
  template <auto kernel>
  static auto call(Parameter<Fields>... fields) {
    return kernel(Args{fields...});
  }
};

/// Whether a derivative by a tensor is asked for: by a transform of torch.func, or in forward mode.
/// Elsewhere a result that needs no gradient tells.
inline bool is_differentiated(const at::Tensor& tensor) {
  if (!tensor.defined()) return false;
  if (tensor._fw_grad(/*level=*/0).defined()) return true;
  return tensor.requires_grad() && at::GradMode::is_enabled() && inside_function_transform();
}
inline bool is_differentiated(const OptionalTensor& tensor) {
  return tensor.has_value() && is_differentiated(*tensor);
}
template <class Other>
bool is_differentiated(const Other&) {
  return false;
}

/// What an operator of that type has at Autograd and FuncTorchBatched if it has no gradient.
template <class Type>
struct WithoutGradient;
template <class Result, class... Parameters>
struct WithoutGradient<Result(Parameters...)> {
  template <const char* function, const char* name>
  static Result past_autograd(c10::DispatchKeySet keys, Parameters... parameters) {
    if (inside_function_transform()) refuse_function_transform(function);
    static const auto op = find_operator<Result(Parameters...)>(name);
    return op.redispatch(keys & c10::after_autograd_keyset, parameters...);
  }
  /// For one that transforms may call, if it is not what they differentiate.
  template <const char* function, const char* name>
  static Result past_autograd_as_constant(c10::DispatchKeySet keys, Parameters... parameters) {
    if ((is_differentiated(parameters) || ...)) refuse_derivative(function);
    static const auto op = find_operator<Result(Parameters...)>(name);
    return op.redispatch(keys & c10::after_autograd_keyset, parameters...);
  }
  template <const char* function>
  static Result refuse_vmap(Parameters...) {
    refuse_function_transform(function);
  }
};

/// The devices that torch has a key for, and one for all others: the registry says what serves a
/// device, or an error does.
constexpr c10::DispatchKey kDeviceKeys[] = {
    c10::DispatchKey::CPU,         c10::DispatchKey::CUDA,
    c10::DispatchKey::XPU,         c10::DispatchKey::MPS,
    c10::DispatchKey::PrivateUse1, c10::DispatchKey::CompositeExplicitAutograd};

template <class Kernel>
void implement_on_devices(torch::Library& m, const char* name, Kernel* kernel) {
  for (const auto key : kDeviceKeys) m.impl(name, torch::dispatch(key, kernel));
}

/// Calls an operator through the dispatcher with the fields of a tuple, and what comes after them.
template <class Operator, class Fields, class... After>
auto call_with(const Operator& op, const Fields& fields, const After&... after) {
  return std::apply([&](const auto&... each) { return op.call(each..., after...); }, fields);
}

}  // namespace boxloss::torch_binding
