// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "subject.hpp"

#include <catch2/catch_test_macros.hpp>

#include "memory.hpp"

namespace boxloss::conformance {

const Implementation& subject() {
  const Implementation& implementation = boxloss::implementation(subject_name());
  if (device_memory(implementation.device) == nullptr) {
    SKIP(subject_name() << ": this machine has no " << name_of(implementation.device) << " device");
  }
  return implementation;
}

}  // namespace boxloss::conformance
