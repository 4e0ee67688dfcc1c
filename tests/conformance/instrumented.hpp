// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>
#include <cstddef>
#include <vector>

/// A copy of an implementation that does something else besides. An Implementation holds plain
/// functions, so there is one copy at a time.
namespace boxloss::conformance {

/// What is wrong with an output. That the checks find these is all that the suite tests of itself;
/// the errors that code can have are in tools/seeded_errors.txt.
enum class Fault {
  kRounding,   ///< values are off by 256 roundings of float32, integers by 1
  kUnwritten,  ///< nothing is written
  kOneMore,    ///< a value too many is written
  kNoNan,      ///< NaN is swallowed
};
constexpr Fault kFaults[] = {Fault::kRounding, Fault::kUnwritten, Fault::kOneMore, Fault::kNoNan};

/// Counts the calls of its functions.
Implementation counting(const Implementation& inner);
int counted_calls();

/// Has that fault in the output of that number, of each call.
Implementation broken(const Implementation& inner, Fault fault, std::size_t output);
/// Has any output been changed by it?
bool is_spoiled();

/// An output on a device, or null; the outputs of the next call.
struct Written {
  void* data;
  DType dtype;
  std::int64_t count;
};
void expect_writes(const std::vector<Written>& outputs);

}  // namespace boxloss::conformance
