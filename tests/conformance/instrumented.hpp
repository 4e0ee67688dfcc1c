// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>

/// A copy of an implementation that does something else besides. An Implementation holds plain
/// functions, so there is one copy at a time.
namespace boxloss::conformance {

struct Calls {
  int forward = 0;
  int backward = 0;
  int cost = 0;
};

enum class Pass { kForward, kBackward, kCost };

/// What is wrong with the loss, pred's gradient or the cost. That the checks find these is all that
/// the suite tests of itself; the errors that code can have are in tools/seeded_errors.txt.
enum class Fault {
  kRounding,   ///< values are off by 256 roundings of float32
  kUnwritten,  ///< nothing is written
  kOneMore,    ///< a value too many is written
  kNoNan,      ///< NaN is swallowed
};
constexpr Fault kFaults[] = {Fault::kRounding, Fault::kUnwritten, Fault::kOneMore, Fault::kNoNan};

/// Counts its calls.
Implementation counting(const Implementation& inner);
Calls calls();

/// Has that fault in that pass.
Implementation broken(const Implementation& inner, Pass pass, Fault fault);

}  // namespace boxloss::conformance
