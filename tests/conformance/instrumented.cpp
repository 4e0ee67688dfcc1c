// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "instrumented.hpp"

#include <cmath>
#include <optional>

#include "array.hpp"
#include "memory.hpp"

namespace boxloss::conformance {
namespace {

const Implementation* inside = nullptr;
Calls counted_calls;
std::optional<Fault> faults[3];  // of each pass

/// `count` values on the device.
void spoil(void* data, DType dtype, std::int64_t count, Fault fault) {
  const DeviceMemory& memory = *device_memory(inside->device);
  Array values(dtype, fault == Fault::kOneMore ? count + 1 : count);
  memory.copy_out(values.data(), data, values.size_bytes());
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = values.get(i);
    if (fault == Fault::kRounding) values.set(i, value * (1 + 0x1p-16));
    if (fault == Fault::kNoNan && std::isnan(value)) values.set(i, 0);
  }
  if (fault == Fault::kOneMore) values.set(count, 0);
  memory.copy_in(data, values.data(), values.size_bytes());
}

template <class Run>
void run_pass(Pass pass, void* data, DType dtype, std::int64_t count, const Run& run) {
  const std::optional<Fault> fault = faults[static_cast<int>(pass)];
  if (fault == Fault::kUnwritten) return;
  run();
  if (fault && data != nullptr) spoil(data, dtype, count, *fault);
}

void forward(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  ++counted_calls.forward;
  const std::int64_t count = p.reduction == Reduction::kNone ? loss_rows(p) : loss_sets(p);
  run_pass(Pass::kForward, outputs.loss, compute_dtype(p), count,
           [&] { inside->box_loss.forward(p, outputs, execution); });
}

void backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
              const LossGradients& gradients, const Execution& execution) {
  ++counted_calls.backward;
  run_pass(Pass::kBackward, gradients.pred, p.pred.dtype, 4 * p.pred.images * p.pred.slots,
           [&] { inside->box_loss.backward(p, grads, scale, gradients, execution); });
}

void matching_cost(const CostProblem& p, float* cost, const Execution& execution) {
  ++counted_calls.cost;
  run_pass(Pass::kCost, cost, DType::kF32, p.layers * p.pred.slots * p.target.slots,
           [&] { inside->matching_cost.run(p, cost, execution); });
}

}  // namespace

Implementation counting(const Implementation& inner) {
  inside = &inner;
  counted_calls = {};
  for (std::optional<Fault>& fault : faults) fault.reset();
  Implementation copy = inner;
  copy.box_loss.forward = forward;
  copy.box_loss.backward = backward;
  copy.matching_cost.run = matching_cost;
  return copy;
}

Calls calls() { return counted_calls; }

Implementation broken(const Implementation& inner, Pass pass, Fault fault) {
  const Implementation copy = counting(inner);
  faults[static_cast<int>(pass)] = fault;
  return copy;
}

}  // namespace boxloss::conformance
