// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/native/box_loss/indexed.hpp"
#include "cpu/native/box_loss/slots.hpp"
#include "cpu/operations.hpp"
#include "dispatch/box_loss/zero_outputs.hpp"

/// Both passes of a problem with any kind of boxes.
namespace boxloss::native {

inline void zero_memory(void* data, std::size_t bytes) {
  if (data != nullptr) std::memset(data, 0, bytes);
}

/// Calls run(compute, pairing), with a value of the compute type; without slots, zeroes the
/// outputs.
template <class Problem, class Written, class Run>
void with_problem(const Problem& p, const Written& outputs, const Run& run) {
  cpu_capability();  // throws here, not in a thread
  if (!has_slots(p)) return zero_outputs(p, outputs, zero_memory);
  with_pairing(p, [&](const auto& pairing) {
    if (compute_dtype(p) == DType::kF64) return run(double(), pairing);
    run(float(), pairing);
  });
}

inline std::size_t bytes_of_partials(const PairProblem& p) {
  return static_cast<std::size_t>(partials_of(p)) * sizeof(LossesPartial);
}

template <class Problem>
void Operations::forward(const Problem& p, const LossOutputs& outputs, const Execution& execution) {
  with_problem(p, outputs, [&](auto compute, const auto& pairing) {
    native::forward<decltype(compute)>(p, pairing, outputs, execution);
  });
}

template <class Problem>
void Operations::backward(const Problem& p, const GradOutputs& grads, const void* scale,
                          const LossGradients& gradients, const Execution& execution) {
  with_problem(p, gradients, [&](auto compute, const auto& pairing) {
    native::backward<decltype(compute)>(p, pairing, grads, scale, gradients, execution);
  });
}

}  // namespace boxloss::native
