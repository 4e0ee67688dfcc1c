// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>
#include <boxloss/registry.hpp>
#include <string>
#include <vector>

#include "adapter.hpp"

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

TORCH_LIBRARY(boxloss, m) {
  using namespace boxloss::torch_binding;
  m.def("implementations() -> str[]", names_and_aten);
  m.def("cpu_capability() -> str", capability_of_cpu);
  m.def("use_implementation(str name) -> str", choose);
}
