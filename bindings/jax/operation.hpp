// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>

#include "call.hpp"

/// The handlers of an operation, and what JAX asks while it traces, from its description in
/// bindings/common.
namespace boxloss::jax_binding {

/// A call's arguments as a description sees them.
template <class Operation>
auto described(const Arguments& given) {
  typename Operation::template Arguments<binding::Described<std::int64_t>> arguments = {};
  const binding::Parameter* row = Operation::kParameters.data();
  std::apply([&](auto&... field) { (given.read((row++)->name, field), ...); }, arguments.fields());
  return arguments;
}

template <class Operation>
struct OperationOf {
  template <class Described>
  static auto describe(const Arguments& given, const Described& arguments,
                       const Implementation& implementation) {
    auto problem = Operation::describe(arguments);
    problem.device = implementation.device;
    if constexpr (requires { problem.index; }) {
      std::string_view word;
      given.read("index", word);
      problem.index = binding::parse("index", word, {DType::kI32, DType::kI64});
    }
    return problem;
  }

  /// Checks a call, sets its results, and gives the bytes of workspace on an implementation.
  static std::size_t trace(const Arguments& given, const Implementation& implementation,
                           Results& results) {
    const auto arguments = described<Operation>(given);
    const auto problem = describe(given, arguments, implementation);
    check_options(problem);
    results.set(Operation::kOutputs, Operation::outputs(arguments, problem));
    try {
      return Operation::workspace_bytes(implementation, problem);
    } catch (const Unsupported&) {
      return 0;  // the implementation says so if it runs
    }
  }

  static void run(const Call& call) {
    const auto arguments = described<Operation>(call.arguments);
    std::array<void*, Operation::kOutputs.size()> outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = call.result(Operation::kOutputs[i]);
    }
    Operation::run(call.implementation, describe(call.arguments, arguments, call.implementation),
                   outputs, call.execution);
  }
};

}  // namespace boxloss::jax_binding
