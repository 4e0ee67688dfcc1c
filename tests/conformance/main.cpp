// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "memory.hpp"
#include "subject.hpp"

namespace {

// Printed by Catch2, and changed by --rng-seed.
constexpr unsigned kSeed = 20260101;

std::string subject_name;

}  // namespace

namespace boxloss::conformance {

const Implementation& subject() {
  const Implementation& implementation = boxloss::implementation(subject_name);
  if (device_memory(implementation.device) == nullptr) {
    SKIP(subject_name << ": this machine has no " << name_of(implementation.device) << " device");
  }
  return implementation;
}

}  // namespace boxloss::conformance

int main(int argc, char** argv) {
  Catch::Session session;
  session.configData().rngSeed = kSeed;
  session.cli(session.cli() | Catch::Clara::Opt(subject_name, "name")["--implementation"](
                                  "the implementation to test, such as cpu/native")
                                  .required());
  const int error = session.applyCommandLine(argc, argv);
  return error != 0 ? error : session.run();
}
