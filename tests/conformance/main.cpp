// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/error.hpp>
#include <catch2/catch_session.hpp>
#include <iostream>
#include <string>

#include "memory.hpp"
#include "subject.hpp"

namespace {

// Printed by Catch2, and changed by --rng-seed.
constexpr unsigned kSeed = 20260101;

std::string name, library;
int divisor = 1;

void load() {
  boxloss::conformance::use_memory(boxloss::load_backend(library).memory);
  const boxloss::Device device = boxloss::implementation(name).device;
  if (boxloss::conformance::device_memory(device) == nullptr) {
    throw boxloss::NoDevice(std::string("this program knows no memory of ") +
                            boxloss::name_of(device) +
                            "; a backend can export it, by BOXLOSS_BACKEND's second argument");
  }
}

}  // namespace

const std::string& boxloss::conformance::subject_name() { return name; }

int boxloss::conformance::mixes_divisor() { return divisor; }

int main(int argc, char** argv) {
  Catch::Session session;
  session.configData().rngSeed = kSeed;
  session.cli(session.cli() |
              Catch::Clara::Opt(name, "name")["--implementation"](
                  "the implementation to test, such as cpu/native")
                  .required() |
              Catch::Clara::Opt(divisor, "number")["--divide-mixes"](
                  "to run one in so many of the random mixes") |
              Catch::Clara::Opt(library, "file")["--load"]("a backend to load first"));
  const int error = session.applyCommandLine(argc, argv);
  if (error != 0) return error;
  if (divisor < 1) {
    std::cerr << "--divide-mixes: " << divisor << " given; it must be at least 1\n";
    return 1;
  }
  try {
    if (!library.empty()) load();
  } catch (const boxloss::Error& problem) {
    std::cerr << problem.what() << '\n';
    return 1;
  }
  return session.run();
}
