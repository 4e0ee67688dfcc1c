// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "instrumented.hpp"

namespace boxloss::conformance {
namespace {

const Implementation* counted = nullptr;
Calls counted_calls;

void forward(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  ++counted_calls.forward;
  counted->forward(p, outputs, execution);
}

void backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
              const LossGradients& gradients, const Execution& execution) {
  ++counted_calls.backward;
  counted->backward(p, grads, scale, gradients, execution);
}

void matching_cost(const CostProblem& p, float* cost, const Execution& execution) {
  ++counted_calls.cost;
  counted->matching_cost(p, cost, execution);
}

}  // namespace

Implementation counting(const Implementation& inner) {
  counted = &inner;
  counted_calls = {};
  Implementation copy = inner;
  copy.forward = forward;
  copy.backward = backward;
  copy.matching_cost = matching_cost;
  return copy;
}

Calls calls() { return counted_calls; }

}  // namespace boxloss::conformance
