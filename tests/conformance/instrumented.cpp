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
int call_count = 0;
std::optional<Fault> seeded;
std::size_t seeded_output = 0;
bool spoiled = false;
std::vector<Written> written;

/// Of an output, whose last value is the one behind it.
Array with_fault(const Array& before, Array values, Fault fault) {
  const std::int64_t count = values.count() - 1;
  if (fault == Fault::kUnwritten) return before;
  if (fault == Fault::kOneMore) values.set(count, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = values.get(i);
    if (fault == Fault::kRounding) {
      values.set(i, is_floating(values.dtype()) ? value * (1 + 0x1p-16) : value + 1);
    }
    if (fault == Fault::kNoNan && std::isnan(value)) values.set(i, 0);
  }
  return values;
}

template <class Function>
void instrumented(const Function& function) {
  ++call_count;
  if (!seeded || seeded_output >= written.size() || written[seeded_output].data == nullptr) {
    return function();
  }
  const DeviceMemory& memory = *device_memory(inside->device);
  const auto [data, dtype, count] = written[seeded_output];
  Array before(dtype, count + 1), after(dtype, count + 1);
  memory.copy_out(before.data(), data, before.size_bytes());
  function();
  memory.copy_out(after.data(), data, after.size_bytes());
  const Array wrong = with_fault(before, after, *seeded);
  memory.copy_in(data, wrong.data(), wrong.size_bytes());
  spoiled = spoiled || !(wrong == after);
}

// --- the functions of all operations

void forward(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  instrumented([&] { inside->box_loss.forward(p, outputs, execution); });
}

void backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
              const LossGradients& gradients, const Execution& execution) {
  instrumented([&] { inside->box_loss.backward(p, grads, scale, gradients, execution); });
}

void matching_cost(const CostProblem& p, float* cost, const Execution& execution) {
  instrumented([&] { inside->matching_cost.run(p, cost, execution); });
}

void assign(const AssignProblem& p, const AssignOutputs& outputs, const Execution& execution) {
  instrumented([&] { inside->assign.run(p, outputs, execution); });
}

void max_iou_match(const MaxIouProblem& p, const MaxIouOutputs& outputs,
                   const Execution& execution) {
  instrumented([&] { inside->max_iou_match.run(p, outputs, execution); });
}

void task_aligned_match(const TaskAlignedProblem& p, const TaskAlignedOutputs& outputs,
                        const Execution& execution) {
  instrumented([&] { inside->task_aligned_match.run(p, outputs, execution); });
}

}  // namespace

Implementation counting(const Implementation& inner) {
  inside = &inner;
  call_count = 0;
  seeded.reset();
  spoiled = false;
  Implementation copy = inner;
  copy.box_loss.forward = forward;
  copy.box_loss.backward = backward;
  copy.matching_cost.run = matching_cost;
  copy.assign.run = assign;
  copy.max_iou_match.run = max_iou_match;
  copy.task_aligned_match.run = task_aligned_match;
  return copy;
}

int counted_calls() { return call_count; }

Implementation broken(const Implementation& inner, Fault fault, std::size_t output) {
  const Implementation copy = counting(inner);
  seeded = fault;
  seeded_output = output;
  return copy;
}

bool is_spoiled() { return spoiled; }

void expect_writes(const std::vector<Written>& outputs) { written = outputs; }

}  // namespace boxloss::conformance
