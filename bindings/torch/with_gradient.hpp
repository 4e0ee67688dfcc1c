// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "operators.hpp"

/// What operators with a gradient share: what they keep for backward, and how a composite is
/// differentiated.
namespace boxloss::torch_binding {

/// Saves the arguments and `scale` for backward: the tensors that are given, and in their places
/// among the options whether they are.
template <class Args>
void save(torch::autograd::AutogradContext* ctx, const Args& args, const at::Tensor& scale) {
  torch::autograd::variable_list tensors;
  std::vector<c10::IValue> options;
  const auto keep = [&](const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, at::Tensor>) {
      tensors.push_back(field);
    } else if constexpr (std::is_same_v<Field, OptionalTensor>) {
      options.emplace_back(field.has_value());
      if (field) tensors.push_back(*field);
    } else if constexpr (std::is_same_v<Field, std::string_view>) {
      options.emplace_back(std::string(field));
    } else if constexpr (std::is_same_v<Field, std::vector<double>>) {
      options.push_back(field.empty() ? c10::IValue()
                                      : c10::IValue(field));  // a list takes an allocation
    } else {
      options.emplace_back(field);
    }
  };
  tensors.reserve(4);
  options.reserve(std::tuple_size_v<decltype(args.fields())>);
  std::apply([&](const auto&... fields) { (keep(fields), ...); }, args.fields());
  tensors.push_back(scale);
  ctx->save_for_backward(std::move(tensors));
  ctx->saved_data["options"] = c10::ivalue::Tuple::create(std::move(options));
}

/// Loads what `save` saved, field by field in the same order.
template <class Args>
class Saved {
 public:
  explicit Saved(torch::autograd::AutogradContext* ctx)
      : tensors_(ctx->get_saved_variables()),
        tensor_(tensors_.begin()),
        options_(ctx->saved_data.at("options").toTupleRef().elements()),
        option_(options_.begin()) {}

  Args args() { return make(static_cast<Fields*>(nullptr)); }
  const at::Tensor& scale() const { return tensors_.back(); }

 private:
  using Fields = decltype(std::declval<const Args&>().fields());

  template <class... Field>
  Args make(std::tuple<Field...>*) {
    return {next<std::decay_t<Field>>()...};
  }

  template <class Field>
  Field next() {
    if constexpr (std::is_same_v<Field, at::Tensor>) {
      return *tensor_++;
    } else if constexpr (std::is_same_v<Field, OptionalTensor>) {
      return (option_++)->toBool() ? OptionalTensor(*tensor_++) : std::nullopt;
    } else if constexpr (std::is_same_v<Field, std::string_view>) {
      return (option_++)->toStringView();
    } else if constexpr (std::is_same_v<Field, std::vector<double>>) {
      const c10::IValue& numbers = *option_++;
      return numbers.isNone() ? Field() : numbers.toDoubleVector();
    } else {
      return (option_++)->template to<Field>();
    }
  }

  torch::autograd::variable_list tensors_;
  torch::autograd::variable_list::const_iterator tensor_;
  const c10::ivalue::TupleElements& options_;
  decltype(options_.begin()) option_;
};

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

}  // namespace boxloss::torch_binding
