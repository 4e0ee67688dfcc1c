// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/error.hpp>
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "memory.hpp"
#include "subject.hpp"

namespace {

// Printed by Catch2, and changed by --rng-seed.
constexpr unsigned kSeed = 20260101;

std::string subject_name;

/// Why the implementation has no device here, if it has none: Kokkos built for a GPU cannot even
/// serve the host without that.
std::string missing_device(const boxloss::Implementation& implementation) {
  using namespace boxloss;
  const conformance::DeviceMemory* memory = conformance::device_memory(implementation.device);
  if (memory == nullptr)
    return std::string("this machine has no ") + name_of(implementation.device);
  GiouLossProblem nothing;
  nothing.device = implementation.device;
  const conformance::Output loss(*memory, sizeof(float)), scale(*memory, sizeof(float));
  const std::size_t bytes = giou_loss_workspace_bytes(implementation, nothing);
  const conformance::Output workspace(*memory, bytes);
  Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = bytes;
  try {
    giou_loss_forward(implementation, nothing, {loss.data(), scale.data()}, execution);
  } catch (const NoDevice& error) {
    return error.what();
  }
  return {};
}

}  // namespace

namespace boxloss::conformance {

const Implementation& subject() {
  const Implementation& implementation = boxloss::implementation(subject_name);
  const std::string missing = missing_device(implementation);
  if (!missing.empty()) SKIP(subject_name << ": " << missing);
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
