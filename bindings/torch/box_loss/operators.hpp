// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <string>
#include <vector>

#include "autograd.hpp"
#include "kernels.hpp"
#include "meta.hpp"

namespace boxloss::torch_binding {

/// Defines the operators of losses of pairs, and their kernels. `Own` is a LossFunction with a
/// description of bindings/common and `formula`, which composite.hpp calls.
template <class Own>
void define_loss(torch::Library& m) {
  using Entries = LossEntries<Own>;
  const LossNames<Own> names;
  // None is keyword-only, which takes torch 0.4 µs for each that is given.
  const std::string defaults = parameters<Own>();
  const std::string given = parameters<Own>(/*has_defaults=*/false);
  // needs_exact_strides: gradients have the strides of their tensors, so compiled graphs must pass
  // these as eager code does.
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  const auto implement = [&](c10::DispatchKey key, const std::string& name, auto&& kernel) {
    m.impl(name.c_str(), torch::dispatch(key, std::forward<decltype(kernel)>(kernel)));
  };
  const auto define = [&](const std::string& name, const std::string& schema, auto* kernel,
                          auto* shapes) {
    m.def((name + schema).c_str(), tags);
    implement_on_devices(m, name.c_str(), kernel);
    implement(c10::DispatchKey::Meta, name, shapes);
  };
  const auto differentiate = [&](const std::string& name, auto* kernel, auto* composite) {
    implement(c10::DispatchKey::Autograd, name, kernel);
    implement(c10::DispatchKey::FuncTorchBatchedDecomposition, name, composite);
  };
  const std::string wanted = ", bool[3] wanted) -> (Tensor pred, Tensor target, Tensor weight)";

  define(names.loss, "(" + defaults + ") -> Tensor",
         Entries::template loss<kernels::loss_only<Own>>,
         Entries::template loss<meta::loss_only<Own>>);
  differentiate(names.loss, Entries::template loss<loss_autograd<Own>>,
                Entries::template loss<loss_composite<Own>>);
  if constexpr (kHasExtras<Own>) {
    define("box_losses", "(" + defaults + ") -> (Tensor loss, Tensor l1, Tensor iou)",
           Entries::template losses<kernels::losses<Own>>,
           Entries::template losses<meta::losses<Own>>);
    differentiate("box_losses", Entries::template losses<losses_autograd<Own>>,
                  Entries::template losses<losses_composite<Own>>);
    define(names.forward,
           "(" + given + ", bool extras) -> (Tensor loss, Tensor scale, Tensor l1, Tensor iou)",
           Entries::template forward<kernels::forward<Own>>,
           Entries::template forward<meta::forward<Own>>);
    define(names.backward, "(Tensor? grad_loss, Tensor? grad_l1, Tensor scale, " + given + wanted,
           Entries::template backward<kernels::backward<Own>>,
           Entries::template backward<meta::backward<Own>>);
  } else {
    define(names.forward, "(" + given + ") -> (Tensor loss, Tensor scale)",
           Entries::template forward_alone<kernels::forward<Own>>,
           Entries::template forward_alone<meta::forward<Own>>);
    define(names.backward, "(Tensor grad_loss, Tensor scale, " + given + wanted,
           Entries::template backward_alone<kernels::backward<Own>>,
           Entries::template backward_alone<meta::backward<Own>>);
  }
  for (const std::string& name : {names.forward, names.backward}) {
    implement(c10::DispatchKey::Autograd, name, torch::autograd::autogradNotImplementedFallback());
  }
}

}  // namespace boxloss::torch_binding
