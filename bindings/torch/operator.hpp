// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "../common/arguments.hpp"
#include "adapter.hpp"

/// For a size that depends on data, a comparison becomes an assertion of the graph.
template <>
struct boxloss::binding::Compare<c10::SymInt> {
  static bool equal(const c10::SymInt& a, const c10::SymInt& b) {
    return a.sym_eq(b).expect_true(__FILE__, __LINE__);
  }
  static bool at_least(const c10::SymInt& a, const c10::SymInt& b) {
    return a.sym_ge(b).expect_true(__FILE__, __LINE__);
  }
  static bool is(const c10::SymInt& a, std::int64_t size) {
    return a.sym_eq(size).guard_or_false(__FILE__, __LINE__);
  }
};

/// An operator from an operation's description in bindings/common. Its kernels are boxed: they take
/// their arguments from torch's stack, and leave their results there. So an operation adds only
/// what reads, describes and runs it, and all else is compiled once.
namespace boxloss::torch_binding {

using torch::jit::Stack;

/// How a kernel runs.
struct Way {
  /// Gives the implementation for a device.
  const Implementation& (*choose)(at::Device) = implementation_on;
  bool checks_values = true;  ///< on the host; not of what is a copy from a device
  bool is_pinned = false;     ///< results
};

struct LossOperator;

/// What code for all operators knows of one.
struct Operator {
  const char* function;  ///< what errors call it
  const char* name;      ///< "boxloss::…"
  const binding::Parameter* parameters;
  std::size_t count;  ///< of these
  std::size_t first;  ///< the tensor, or list, beside which all others must be
  std::vector<std::size_t> differentiable;  ///< arguments that a loss has gradients by
  std::vector<const char*> results;
  void (*run)(const Operator&, Stack&, const Way&);
  void (*meta)(const Operator&, Stack&);  ///< of shapes and dtypes alone
  /// What a device's kernel does, if it is more than run.
  void (*kernel)(const Operator& op, Stack& stack) = [](const Operator& op, Stack& stack) {
    op.run(op, stack, {});
  };
  const LossOperator* loss = nullptr;              ///< whose it is
  bool drops_scale = false;                        ///< a loss' second result is not kept
  std::optional<c10::OperatorHandle> handle = {};  ///< once it is defined

  /// The arguments of a call, the last on the stack.
  c10::IValue* arguments(Stack& stack) const { return stack.data() + stack.size() - count; }
  /// Of them the tensor beside which all others must be.
  const at::Tensor& first_of(Stack& stack) const;
};

/// A call: it reads the arguments from the stack as a description sees them, and has the memory of
/// all results. Checks that tensors are dense, and on one device.
template <class Size>
class Call {
 public:
  Call(const Operator& op, Stack& stack, const Way& way);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void read(binding::Array<Size>& to) { set(to, next(), /*is_packed=*/false); }
  void read(binding::PackedArray<Size>& to) { set(to, next(), /*is_packed=*/true); }
  void read(std::vector<binding::PackedArray<Size>>& to);
  void read(binding::HostNumber& to);
  void read(bool& to) { to = next().toBool(); }
  void read(double& to) { to = next().toDouble(); }
  void read(std::int64_t& to) { to = next().toInt(); }
  void read(std::string_view& to) { to = next().toStringView(); }
  void read(std::optional<double>& to) {
    if (const c10::IValue& value = next(); !value.isNone()) to = value.toDouble();
  }
  void read(std::optional<std::int64_t>& to) {
    if (const c10::IValue& value = next(); !value.isNone()) to = value.toInt();
  }
  void read(std::vector<double>& to) { to = next().toDoubleVector(); }

  const at::Tensor& first() const { return first_; }
  /// Of the device, which torch's current one is while the call lasts.
  const Implementation& implementation() const { return *implementation_; }
  bool checks_values() const { return way_.checks_values && first().is_cpu(); }

  /// Replaces an array by a row-major copy.
  void pack(binding::Array<Size>& array);

  /// The results, empty, and where their memory is.
  void allocate(const binding::Output<Size>* outputs, std::size_t count, void** memory,
                std::size_t workspace_bytes);
  const Execution& execution() const { return execution_; }

  /// Puts the results in the place of the arguments.
  void finish();

 private:
  struct Copied {
    at::Tensor result, written;
  };

  const c10::IValue& next() { return op_.arguments(stack_)[place_++]; }
  const char* name() const { return op_.parameters[place_ - 1].name; }
  void set(binding::Array<Size>& array, const c10::IValue& value, bool is_packed);
  at::Tensor empty_like(const binding::Output<Size>& output, const at::TensorOptions& options,
                        void** memory);

  const Operator& op_;
  Stack& stack_;
  const Way way_;
  const at::Tensor& first_;
  const Implementation* implementation_ = nullptr;
  std::optional<c10::DeviceGuard> guard_;
  std::size_t place_ = 0;  ///< of the next argument
  c10::SmallVector<at::Tensor, 2> copies_;
  c10::SmallVector<at::Tensor, 4> results_;
  c10::SmallVector<Copied, 2> to_be_copied_;  ///< results that core does not write itself
  std::optional<Scratch> scratch_;
  Execution execution_;
};
extern template class Call<std::int64_t>;
extern template class Call<c10::SymInt>;

/// A call's arguments as the description sees them.
template <class Operation, class Size>
auto read(Call<Size>& call) {
  typename Operation::template Arguments<binding::Described<Size>> a = {};
  std::apply([&](auto&... each) { (call.read(each), ...); }, a.fields());
  return a;
}

template <class Operation>
void run(const Operator& op, Stack& stack, const Way& way) {
  Call<std::int64_t> call(op, stack, way);
  auto a = read<Operation>(call);
  const auto pack = [&](binding::Array<std::int64_t>& array) { call.pack(array); };
  if constexpr (requires { Operation::lay_out(a, pack); }) Operation::lay_out(a, pack);
  auto problem = Operation::describe(a);
  problem.device = call.implementation().device;
  // Checks all before values are read.
  const std::size_t workspace_bytes = Operation::workspace_bytes(call.implementation(), problem);
  if constexpr (requires { Operation::check_values(a, problem); }) {
    if (call.checks_values()) Operation::check_values(a, problem);
  }
  if constexpr (requires { Operation::adds_up(a); }) {
    if (Operation::adds_up(a)) alert_not_deterministic(op.function, call.first());
  }
  const auto outputs = Operation::outputs(a, problem);
  std::array<void*, std::tuple_size_v<std::decay_t<decltype(outputs)>>> memory;
  call.allocate(outputs.data(), outputs.size(), memory.data(), workspace_bytes);
  Operation::run(call.implementation(), problem, memory, call.execution());
  call.finish();
}

template <class Operation>
void meta(const Operator& op, Stack& stack) {
  Call<c10::SymInt> call(op, stack, {});
  const auto a = read<Operation>(call);
  const auto problem = Operation::describe(a);
  check_options(problem);
  const auto outputs = Operation::outputs(a, problem);
  call.allocate(outputs.data(), outputs.size(), nullptr, 0);
  call.finish();
}

/// The problem without sizes, strides and memory, of a call that stays on the stack. Checks all.
template <class Operation>
auto problem_of(const Operator& op, Stack& stack) {
  return with_torch_errors(op.function, [&] {
    Call<c10::SymInt> call(op, stack, {});
    auto problem = Operation::describe(read<Operation>(call));
    check_options(problem);
    return problem;
  });
}

template <class Operation>
Operator operator_of(const char* name = Operation::kOperator) {
  const auto& parameters = Operation::kParameters;
  Operator op = {.function = Operation::kFunction,
                 .name = name,
                 .parameters = parameters.data(),
                 .count = parameters.size(),
                 .first = 0,
                 .differentiable = {},
                 .results = {Operation::kOutputs.begin(), Operation::kOutputs.end()},
                 .run = run<Operation>,
                 .meta = meta<Operation>};
  if constexpr (requires { Operation::kInFront; }) op.first = Operation::kInFront;
  if constexpr (requires { Operation::kDifferentiable; }) {
    for (const std::string_view each : Operation::kDifferentiable) {
      for (std::size_t i = 0; i < op.count; ++i) {
        if (parameters[i].name == each) op.differentiable.push_back(i);
      }
    }
  }
  return op;
}

using OptionalTensor = std::optional<at::Tensor>;

/// The kinds of options.hpp, for composites.
struct TensorKinds : binding::PlainKinds {
  using Strided = at::Tensor;
  using Packed = at::Tensor;
  using OptionalStrided = OptionalTensor;
  using OptionalPacked = OptionalTensor;
};

template <class Operation>
auto tensors_of(const c10::IValue* arguments) {
  typename Operation::template Arguments<TensorKinds> a = {};
  const auto set = [&](auto& to) {
    const c10::IValue& value = *arguments++;
    if constexpr (std::is_same_v<decltype(to), std::string_view&>) {
      to = value.toStringView();
    } else {
      to = value.to<std::decay_t<decltype(to)>>();
    }
  };
  std::apply([&](auto&... each) { (set(each), ...); }, a.fields());
  return a;
}

using Kernel = void (*)(const Operator& op, c10::DispatchKeySet keys, Stack& stack);
void implement(torch::Library& m, const Operator& op, c10::DispatchKey key, Kernel kernel);

/// The schema, and a kernel for all devices. The operator must live for ever.
void define(torch::Library& m, Operator& op, std::vector<at::Tag> tags = {});

/// Calls it past its Autograd key.
void pass_autograd(const Operator& op, c10::DispatchKeySet keys, Stack& stack);

/// It bypasses autograd, and function transforms are refused.
void refuse_transforms(torch::Library& m, const Operator& op);

/// It bypasses autograd, and only transforms that differentiate it are refused.
void be_constant(torch::Library& m, const Operator& op);

}  // namespace boxloss::torch_binding
