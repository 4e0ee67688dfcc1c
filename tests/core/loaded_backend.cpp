// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
// Shared libraries for test_backend.cpp. They link nothing: what is loaded needs nothing of boxloss
// but its headers.
#include <boxloss/backend.hpp>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#if defined(BOXLOSS_LACKS_SYMBOL)
void defined_nowhere();
#endif

namespace {

boxloss::Implementation implementation_named(const char* name) {
  boxloss::Implementation self;
  self.name = name;
  self.matching_cost.losses = boxloss::kLosses;
  self.matching_cost.class_terms = boxloss::kClassTerms;
  self.matching_cost.run = [](const boxloss::CostProblem&, float*, const boxloss::Execution&) {};
  return self;
}

/// What they are, the environment says.
[[maybe_unused]] std::vector<boxloss::Implementation> implementations() {
#if defined(BOXLOSS_LACKS_SYMBOL)
  defined_nowhere();
#endif
  const char* const named = std::getenv("BOXLOSS_LOADED");
  const std::string_view kind = named == nullptr ? "" : named;
  if (kind == "throws") throw std::runtime_error("no driver");
  if (kind == "throws number") throw 3;
  if (kind == "none") return {};
  if (kind == "taken") return {implementation_named("npu/new"), implementation_named("cpu/native")};
  return {implementation_named("npu/loaded")};
}

}  // namespace

#if defined(BOXLOSS_OLD_ABI)
extern "C" __attribute__((visibility("default")))
const boxloss::Backend boxloss_backend = {boxloss::kBackendAbi - 1, implementations};
#elif !defined(BOXLOSS_NO_BACKEND)
BOXLOSS_BACKEND(implementations);
#endif
