// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>
#include <vector>

/// Copies of an implementation that do something else besides. An Implementation holds plain
/// functions, so there is one copy of each kind at a time.
namespace boxloss::conformance {

struct Calls {
  int forward = 0;
  int backward = 0;
  int cost = 0;
};

/// Counts its calls.
Implementation counting(const Implementation& inner);
Calls calls();

/// One way to be wrong, in one of the three, and the named case in which it must show.
struct Breakage {
  const char* name;
  const char* case_name;
  void (*forward)(const LossProblem&, const LossOutputs&, const Execution&);
  void (*backward)(const LossProblem&, const GradOutputs&, const void* scale, const LossGradients&,
                   const Execution&);
  void (*matching_cost)(const CostProblem&, float* cost, const Execution&) = nullptr;
};

/// Of `forward` and `backward`.
const std::vector<Breakage>& breakages();

/// Of `matching_cost`.
const std::vector<Breakage>& cost_breakages();

/// Wrong in that way, else as `inner`.
Implementation broken(const Implementation& inner, const Breakage& breakage);

}  // namespace boxloss::conformance
