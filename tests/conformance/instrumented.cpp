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

/// Takes the place of a function of an operation.
template <auto operation, auto function, class... Arguments>
void wrapper(Arguments... arguments) {
  instrumented([&] { (inside->*operation.*function)(arguments...); });
}

}  // namespace

Implementation counting(const Implementation& inner) {
  inside = &inner;
  call_count = 0;
  seeded.reset();
  spoiled = false;
  Implementation copy = inner;
  using I = Implementation;
  copy.box_loss.forward = wrapper<&I::box_loss, &LossFunctions::forward>;
  copy.box_loss.backward = wrapper<&I::box_loss, &LossFunctions::backward>;
  copy.matching_cost.run = wrapper<&I::matching_cost, &CostFunctions::run>;
  copy.assign.run = wrapper<&I::assign, &decltype(I::assign)::run>;
  copy.max_iou_match.run = wrapper<&I::max_iou_match, &decltype(I::max_iou_match)::run>;
  copy.task_aligned_match.run =
      wrapper<&I::task_aligned_match, &decltype(I::task_aligned_match)::run>;
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
