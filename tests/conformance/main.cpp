// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_session.hpp>
#include <string>

#include "subject.hpp"

namespace {

// Printed by Catch2, and changed by --rng-seed.
constexpr unsigned kSeed = 20260101;

std::string name;

}  // namespace

const std::string& boxloss::conformance::subject_name() { return name; }

int main(int argc, char** argv) {
  Catch::Session session;
  session.configData().rngSeed = kSeed;
  session.cli(session.cli() | Catch::Clara::Opt(name, "name")["--implementation"](
                                  "the implementation to test, such as cpu/native")
                                  .required());
  const int error = session.applyCommandLine(argc, argv);
  return error != 0 ? error : session.run();
}
