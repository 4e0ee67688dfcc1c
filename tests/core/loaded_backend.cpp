// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
// Shared libraries for test_backend.cpp. They link nothing: what is loaded needs nothing of boxloss
// but its headers.
#include <boxloss/backend.hpp>
#include <stdexcept>

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

[[maybe_unused]] std::vector<boxloss::Implementation> implementations() {
#if defined(BOXLOSS_LACKS_SYMBOL)
  defined_nowhere();
#endif
#if defined(BOXLOSS_THROWS)
  throw std::runtime_error("no driver");
#elif defined(BOXLOSS_THROWS_NUMBER)
  throw 3;
#endif
#if defined(BOXLOSS_EMPTY_LIST)
  return {};
#endif
#if defined(BOXLOSS_TAKEN_NAME)
  return {implementation_named("npu/new"), implementation_named("cpu/native")};
#endif
  return {implementation_named("npu/loaded")};
}

}  // namespace

#if defined(BOXLOSS_OLD_ABI)
extern "C" __attribute__((visibility("default")))
const boxloss::Backend boxloss_backend = {boxloss::kBackendAbi - 1, implementations};
#elif !defined(BOXLOSS_NO_BACKEND)
BOXLOSS_BACKEND(implementations);
#endif
