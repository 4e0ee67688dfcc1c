// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu/indexed_loops.hpp"
#include "cpu/matching_cost.hpp"
#include "src/backends.hpp"

namespace boxloss {
namespace {

std::size_t workspace_bytes(const LossProblem& p) {
  return static_cast<std::size_t>(native::partials_of(p)) * sizeof(LossesPartial);
}

void forward(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  dispatch(p, outputs, native::zero_memory, [&](auto dtypes, const auto& pairing) {
    using D = decltype(dtypes);
    native::forward<typename D::Pred, typename D::Target, typename D::Compute>(p, pairing, outputs,
                                                                               execution);
  });
}

void backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
              const LossGradients& gradients, const Execution& execution) {
  dispatch(p, gradients, native::zero_memory, [&](auto dtypes, const auto& pairing) {
    using D = decltype(dtypes);
    native::backward<typename D::Pred, typename D::Target, typename D::Compute>(
        p, pairing, grads, scale, gradients, execution);
  });
}

}  // namespace

Implementation cpu::native() {
  return {"cpu/native",
          Device::kCpu,
          100,
          kLosses,
          kPairings,
          kExtras,
          kClassTerms,
          workspace_bytes,
          forward,
          backward,
          native::matching_cost};
}

}  // namespace boxloss
