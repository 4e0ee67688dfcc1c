// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>
#include <boxloss/registry.hpp>
#include <string>
#include <vector>

#include "adapter.hpp"
#include "box_loss/args.hpp"

namespace boxloss::torch_binding {
namespace {

std::vector<std::string> names_and_aten() {
  std::vector<std::string> names = implementation_names();
  names.emplace_back("aten");
  return names;
}

std::string choose(std::string_view name) {
  return with_torch_errors("use_implementation", [&] { return choose_implementation(name); });
}

std::string capability_of_cpu() {
  return with_torch_errors("cpu_capability", [] { return std::string(cpu_capability()); });
}

}  // namespace
}  // namespace boxloss::torch_binding

// needs_exact_strides: gradients have the strides of their tensors, so compiled graphs must pass
// these as eager code does.
TORCH_LIBRARY(boxloss, m) {
  using namespace boxloss::torch_binding;
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  const auto define = [&](const std::string& schema) { m.def(schema.c_str(), tags); };
  // None is keyword-only, which takes torch 0.4 µs for each that is given.
  const std::string defaults = parameters<boxloss::binding::BoxLoss>();
  const std::string given = parameters<boxloss::binding::BoxLoss>(/*has_defaults=*/false);
  define("box_loss(" + defaults + ") -> Tensor");
  define("box_losses(" + defaults + ") -> (Tensor loss, Tensor l1, Tensor iou)");
  define("_box_loss_forward(" + given +
         ", bool extras) -> (Tensor loss, Tensor scale, Tensor l1, Tensor iou)");
  define("_box_loss_backward(Tensor? grad_loss, Tensor? grad_l1, Tensor scale, " + given +
         ", bool[3] wanted) -> (Tensor pred, Tensor target, Tensor weight)");
  m.def("implementations() -> str[]", names_and_aten);
  m.def("cpu_capability() -> str", capability_of_cpu);
  m.def("use_implementation(str name) -> str", choose);
}
