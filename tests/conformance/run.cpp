// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <algorithm>
#include <utility>

namespace boxloss::conformance {
namespace {

Array in_order(Array values, const std::vector<std::int64_t>& places) {
  if (places.empty()) return values;
  Array ordered(values.dtype(), values.count());
  for (std::int64_t i = 0; i < values.count(); ++i) {
    ordered.set(i, values.get(places[static_cast<std::size_t>(i)]));
  }
  return ordered;
}

}  // namespace

bool same_bits(const Results& a, const Results& b) {
  return std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                    [](const Result& x, const Result& y) { return x.values == y.values; });
}

Run::Run(const Implementation& implementation, const ParallelFor& parallel_for,
         const std::vector<OutputArray>& outputs)
    : memory_(*device_memory(implementation.device)),
      parallel_for_(parallel_for),
      arrays_(outputs) {
  for (const OutputArray& array : arrays_) {
    const Array values(array.dtype, array.is_wanted ? array.count : 0);
    outputs_.emplace_back(memory_, values.size_bytes(), array.shift, poison_of(array.dtype));
  }
}

void Run::move(const void*& pointer, const Array& host) {
  if (pointer == nullptr) return;
  const auto offset =
      static_cast<const std::byte*>(pointer) - static_cast<const std::byte*>(host.data());
  pointer = static_cast<const std::byte*>(inputs_.emplace_back(memory_, host).data()) + offset;
}

void* Run::output(std::size_t i) const {
  return arrays_[i].is_wanted ? outputs_[i].data() : nullptr;
}

Execution Run::execution(std::size_t workspace_bytes) {
  Execution execution;
  execution.workspace = workspace_.emplace_back(memory_, workspace_bytes).data();
  execution.workspace_bytes = workspace_bytes;
  execution.parallel_for = parallel_for_;
  return execution;
}

Results Run::results() const {
  Results results{{}, true};
  const auto inspect = [&](const Output& output) {
    results.sentinels_intact = results.sentinels_intact && output.sentinels_intact();
  };
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const OutputArray& array = arrays_[i];
    inspect(outputs_[i]);
    results.outputs.push_back({array.name, {}});
    if (!array.is_wanted) continue;
    Array values(array.dtype, array.count);
    outputs_[i].read(values);
    results.outputs.back().values = in_order(std::move(values), array.places);
  }
  for (const Output& workspace : workspace_) inspect(workspace);
  return results;
}

}  // namespace boxloss::conformance
