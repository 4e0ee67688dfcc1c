// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "subject.hpp"

#include <boxloss/error.hpp>
#include <catch2/catch_test_macros.hpp>

#include "example_parameters.hpp"
#include "memory.hpp"

namespace boxloss::conformance {
namespace {

/// Why the implementation has no device here, if it has none: Kokkos built for a GPU cannot even
/// serve the host without that.
std::string missing_device(const Implementation& implementation) {
  const DeviceMemory* memory = device_memory(implementation.device);
  if (memory == nullptr)
    return std::string("this machine has no ") + name_of(implementation.device);
  if (implementation.device != Device::kCpu || implementation.box_loss.forward == nullptr)
    return {};
  LossProblem nothing;
  nothing.pred.slots = nothing.target.slots = 0;
  implementation.box_loss.losses.for_each([&](Loss served) { nothing.loss = served; });
  nothing.parameters = example_parameters(nothing.loss);
  const Output loss(*memory, sizeof(float)), scale(*memory, sizeof(float));
  const std::size_t bytes = loss_workspace_bytes(implementation, nothing);
  const Output workspace(*memory, bytes);
  Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = bytes;
  try {
    loss_forward(implementation, nothing, {loss.data(), scale.data()}, execution);
  } catch (const NoDevice& error) {
    return error.what();
  }
  return {};
}

}  // namespace

const Implementation& subject() {
  const Implementation& implementation = boxloss::implementation(subject_name());
  const std::string missing = missing_device(implementation);
  if (!missing.empty()) SKIP(subject_name() << ": " << missing);
  return implementation;
}

}  // namespace boxloss::conformance
