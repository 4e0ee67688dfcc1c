// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu/matching_cost.hpp"
#include "cpu/native_indexed.hpp"
#include "cpu/native_slots.hpp"
#include "pairings/no_slots.hpp"
#include "pairings/with_pairing.hpp"
#include "src/backends.hpp"

namespace boxloss {
namespace {

void zero_memory(void* data, std::size_t bytes) {
  if (data != nullptr) std::memset(data, 0, bytes);
}

/// Calls run(compute, pairing), with a value of the compute type; without slots, zeroes the
/// outputs.
template <class Written, class Run>
void with_problem(const LossProblem& p, const Written& outputs, const Run& run) {
  cpu_capability();  // throws here, not in a thread
  if (!has_slots(p)) return zero_outputs(p, outputs, zero_memory);
  with_pairing(p, [&](const auto& pairing) {
    if (compute_dtype(p) == DType::kF64) return run(double(), pairing);
    run(float(), pairing);
  });
}

std::size_t workspace_bytes(const LossProblem& p) {
  return static_cast<std::size_t>(native::partials_of(p)) * sizeof(LossesPartial);
}

void forward(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  with_problem(p, outputs, [&](auto compute, const auto& pairing) {
    native::forward<decltype(compute)>(p, pairing, outputs, execution);
  });
}

void backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
              const LossGradients& gradients, const Execution& execution) {
  with_problem(p, gradients, [&](auto compute, const auto& pairing) {
    native::backward<decltype(compute)>(p, pairing, grads, scale, gradients, execution);
  });
}

}  // namespace

Implementation cpu::native() {
  Implementation self;
  self.name = "cpu/native";
  self.priority = 100;
  self.box_loss.losses = kLosses;
  self.box_loss.pairings = kPairings;
  self.box_loss.extras = kExtras;
  self.box_loss.workspace_bytes = workspace_bytes;
  self.box_loss.forward = forward;
  self.box_loss.backward = backward;
  self.matching_cost.losses = kLosses;
  self.matching_cost.class_terms = kClassTerms;
  self.matching_cost.run = native::matching_cost;
  return self;
}

}  // namespace boxloss
