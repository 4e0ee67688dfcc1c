// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "array.hpp"
#include "cost_cases.hpp"

namespace boxloss::conformance {

/// A problem of costs on the host, with the arrays that it points to. Every array ends with the
/// last element that may be read.
struct HostCost {
  CostProblem problem;
  Array pred, target, offsets, scores, labels;
};

/// What no entry is computed from is filled with NaN or, in integer dtypes, the largest value. Of
/// random labels one in ten names no class. `offsets`, if any, take the place of the case's.
HostCost make_cost(const CostCase& c, Random& random,
                   const std::vector<std::int64_t>& offsets = {});

/// Number of values of the result.
std::int64_t cost_entries(const CostProblem& problem);

}  // namespace boxloss::conformance
