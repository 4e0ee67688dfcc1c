// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "../common/arguments.hpp"
#include "adapter.hpp"
#include "operators.hpp"

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

/// An operator from an operation's description in bindings/common.
namespace boxloss::torch_binding {

template <class Operation>
using TensorsOf = typename Operation::template Arguments<TensorKinds>;
template <class Operation, class Size>
using DescribedOf = typename Operation::template Arguments<binding::Described<Size>>;

/// A call's arguments as its description sees them. They point to its tensors, and to packed copies
/// that this owns. Checks that all tensors are dense, and on the device of the first.
template <class Operation, class Size>
class Converted {
 public:
  Converted(const char* function, const TensorsOf<Operation>& tensors) : function_(function) {
    const binding::Parameter* row = Operation::kParameters;
    const auto set_all = [&](auto&... to) {
      std::apply([&](const auto&... from) { (set(to, from, (row++)->name), ...); },
                 tensors.fields());
    };
    std::apply(set_all, arguments_.fields());
  }
  Converted(const Converted&) = delete;
  Converted& operator=(const Converted&) = delete;

  const DescribedOf<Operation, Size>& arguments() const { return arguments_; }

 private:
  void set(binding::Array<Size>& array, const at::Tensor& tensor, const char* name) {
    set_array(array, tensor, name, nullptr);
  }
  void set(binding::PackedArray<Size>& array, const at::Tensor& tensor, const char* name) {
    set_array(array, tensor, name, &copies_);
  }
  template <class Base>
  void set(binding::OptionalArray<Base>& array, const OptionalTensor& tensor, const char* name) {
    array.name = name;
    if (tensor) set(static_cast<Base&>(array), *tensor, name);
  }
  template <class Value>
  void set(Value& to, const Value& from, const char*) {
    to = from;
  }

  using Copies = c10::SmallVector<at::Tensor, 2>;
  void set_array(binding::Array<Size>& array, const at::Tensor& tensor, const char* name,
                 Copies* copies) {
    check_placed(function_, name, tensor, first_name_, first_);
    if (first_ == nullptr) {
      first_ = &tensor;
      first_name_ = name;
    }
    array.name = name;
    array.is_given = true;
    set_dtype(array.dtype, array.other_dtype, tensor.scalar_type());
    array.rank = static_cast<std::size_t>(tensor.dim());
    if constexpr (binding::kHasNumbers<Size>) {
      const bool is_copied = copies != nullptr && !tensor.is_contiguous();
      const at::Tensor& its = is_copied ? copies->emplace_back(tensor.contiguous()) : tensor;
      array.shape = its.sizes().data();
      array.strides = its.strides().data();
      array.data = its.const_data_ptr();
    } else {
      array.shape = tensor.sym_sizes().data();
    }
  }

  const char* function_;
  const char* first_name_ = nullptr;
  const at::Tensor* first_ = nullptr;
  DescribedOf<Operation, Size> arguments_ = {};
  Copies copies_;
};

/// The schema, and the kernels of an operation without a gradient.
template <class Operation>
struct OperatorOf {
  using Tensors = TensorsOf<Operation>;
  using Fields = decltype(std::declval<const Tensors&>().fields());
  static constexpr std::size_t kCount = Operation::kOutputs.size();
  using Outputs = std::array<at::Tensor, kCount>;
  /// A tensor, or a tuple of several.
  using Result = std::conditional_t<kCount == 1, at::Tensor,
                                    decltype(std::tuple_cat(std::declval<const Outputs&>()))>;
  using Type = Signature<Result, std::tuple<>, Fields>;
  using Kernels = WithoutGradient<Type>;

  /// Shapes and dtypes alone; `function` is what errors call it.
  static Result meta_of(const char* function, const Tensors& tensors) {
    return with_torch_errors(function, [&] {
      const Converted<Operation, c10::SymInt> converted(function, tensors);
      const auto problem = Operation::describe(converted.arguments());
      Outputs outputs;
      std::size_t i = 0;
      for (const auto& each : Operation::outputs(converted.arguments(), problem)) {
        outputs[i++] = at::empty_symint(each.shape, options_of(tensors, each.dtype));
      }
      return as_result(outputs);
    });
  }

  static Result meta(const Tensors& tensors) { return meta_of(Operation::kFunction, tensors); }

  /// How a kernel runs: what errors call it, whether values are checked on the host, which those of
  /// a copy from a device are not, and whether results are in pinned memory.
  struct Way {
    const char* function = Operation::kFunction;
    bool checks_values = true, is_pinned = false;
  };

  /// By the implementation that `choose` gives for a device.
  template <class Choose>
  static Result run_by(const Choose& choose, const Way& way, const Tensors& tensors) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return with_torch_errors(way.function, [&] {
      const at::Device device = first_of(tensors).device();
      const Implementation& implementation = choose(device);  // before memory is asked for there
      const Converted<Operation, std::int64_t> converted(way.function, tensors);
      const auto& arguments = converted.arguments();
      auto problem = Operation::describe(arguments);
      if constexpr (requires { Operation::check_values(arguments, problem); }) {
        if (device.is_cpu() && way.checks_values) Operation::check_values(arguments, problem);
      }
      const c10::OptionalDeviceGuard guard(device);
      problem.device = implementation.device;
      const std::size_t bytes = Operation::workspace_bytes(implementation, problem);
      Outputs outputs;
      std::array<void*, kCount> memory;
      std::size_t i = 0;
      for (const auto& each : Operation::outputs(arguments, problem)) {
        const auto options = options_of(tensors, each.dtype).pinned_memory(way.is_pinned);
        outputs[i] = at::empty(each.shape, options);
        memory[i] = outputs[i].mutable_data_ptr();
        ++i;
      }
      const Scratch scratch(bytes, first_of(tensors));
      Execution execution = execution_on(device);
      execution.workspace = scratch.data();
      execution.workspace_bytes = bytes;
      Operation::run(implementation, problem, memory, execution);
      return as_result(outputs);
    });
  }

  static Result run(const Tensors& tensors) { return run_by(implementation_on, {}, tensors); }

  /// Through the dispatcher.
  static Result call(const Tensors& tensors) {
    static const auto op = find_operator<Type>(Operation::kOperator);
    return call_with(op, tensors.fields());
  }

  /// Registers the schema, and `kernel` for all devices.
  template <auto kernel = run, auto shapes = meta>
  static void define(torch::Library& m, const std::vector<at::Tag>& tags) {
    std::string results;
    for (const char* const each : Operation::kOutputs) {
      results += (results.empty() ? "Tensor " : ", Tensor ") + std::string(each);
    }
    if (kCount == 1) results = "Tensor";
    m.def((name() + ("(" + parameters<Operation>() + ") -> ") +
           (kCount == 1 ? results : "(" + results + ")"))
              .c_str(),
          tags);
    implement_on_devices(m, name(), EntryOf<Tensors>::template call<kernel>);
    m.impl(name(),
           torch::dispatch(c10::DispatchKey::Meta, EntryOf<Tensors>::template call<shapes>));
  }

  /// It bypasses autograd, and function transforms are refused.
  static void refuse_transforms(torch::Library& m) {
    constexpr auto kernel =
        Kernels::template past_autograd<Operation::kFunction, Operation::kOperator>;
    m.impl(name(), torch::dispatch(c10::DispatchKey::Autograd, kernel));
    m.impl(name(), torch::dispatch(c10::DispatchKey::FuncTorchBatched,
                                   Kernels::template refuse_vmap<Operation::kFunction>));
  }

  /// It bypasses autograd, and only transforms that differentiate it are refused.
  static void be_constant(torch::Library& m) {
    constexpr auto kernel =
        Kernels::template past_autograd_as_constant<Operation::kFunction, Operation::kOperator>;
    m.impl(name(), torch::dispatch(c10::DispatchKey::Autograd, kernel));
  }

 private:
  static const char* name() { return Operation::kOperator + sizeof("boxloss::") - 1; }
  static const at::Tensor& first_of(const Tensors& tensors) {
    return std::get<0>(tensors.fields());
  }
  static at::TensorOptions options_of(const Tensors& tensors, DType dtype) {
    return first_of(tensors).options().dtype(scalar_type(dtype));
  }
  static Result as_result(const Outputs& outputs) {
    if constexpr (kCount == 1) {
      return outputs[0];
    } else {
      return std::tuple_cat(outputs);
    }
  }
};

}  // namespace boxloss::torch_binding
