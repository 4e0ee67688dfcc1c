// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>
#include <deque>
#include <optional>
#include <vector>

#include "memory.hpp"

/// Runs an implementation on copies of a host problem on its device.
namespace boxloss::conformance {

/// How outputs are aligned: as allocations are, or to their elements only.
enum class Alignment { kWide, kElement };

/// An array that a run writes.
struct OutputArray {
  const char* name;
  DType dtype;
  std::int64_t count;
  bool is_wanted = true;
  std::size_t shift = 0;  ///< in bytes, from an address that suits every access
  /// Where its elements lie, if not one after the other.
  std::vector<std::int64_t> places = {};
};

/// What a run has written to an output; nothing where it was not wanted.
struct Result {
  const char* name;
  std::optional<Array> values;
};

struct Results {
  std::vector<Result> outputs;
  bool sentinels_intact;
};

bool same_bits(const Results& a, const Results& b);

/// What one run needs on the device: copies of its inputs, which it must not read beyond, and
/// between sentinels its outputs and its workspace.
class Run {
 public:
  Run(const Implementation& implementation, const ParallelFor& parallel_for,
      const std::vector<OutputArray>& outputs);

  /// Makes a pointer into `host`, if it is one, a pointer to the same element of a copy.
  void move(const void*& pointer, const Array& host);

  /// Null for an output that is not wanted.
  void* output(std::size_t i) const;

  /// To be asked for once, when all else is ready.
  Execution execution(std::size_t workspace_bytes = 0);

  Results results() const;

 private:
  const DeviceMemory& memory_;
  const ParallelFor& parallel_for_;
  std::vector<OutputArray> arrays_;
  std::deque<Input> inputs_;
  std::deque<Output> outputs_, workspace_;
};

}  // namespace boxloss::conformance
