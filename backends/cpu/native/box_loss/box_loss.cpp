// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/registry.hpp>

#include "cpu/native/box_loss/indexed.hpp"
#include "cpu/native/box_loss/slots.hpp"
#include "cpu/operations.hpp"
#include "dispatch/box_loss/with_pairing.hpp"
#include "dispatch/box_loss/zero_outputs.hpp"

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

}  // namespace

std::size_t native::workspace_bytes(const LossProblem& p) {
  return static_cast<std::size_t>(partials_of(p)) * sizeof(LossesPartial);
}

void native::forward(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  with_problem(p, outputs, [&](auto compute, const auto& pairing) {
    forward<decltype(compute)>(p, pairing, outputs, execution);
  });
}

void native::backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
                      const LossGradients& gradients, const Execution& execution) {
  with_problem(p, gradients, [&](auto compute, const auto& pairing) {
    backward<decltype(compute)>(p, pairing, grads, scale, gradients, execution);
  });
}

}  // namespace boxloss
