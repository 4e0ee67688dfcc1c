// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/matching_cost.hpp"
#include "operation.hpp"

namespace boxloss::torch_binding {

using binding::AnyCostProblem;
using CostTensors = TensorsOf<binding::MatchingCost>;

/// The cost as "aten" computes it, of arguments that were checked.
at::Tensor composite_cost(const CostTensors& a, const AnyCostProblem& p);

/// The type that is computed in.
inline at::ScalarType compute_type(const PairwiseProblem& p) {
  return scalar_type(compute_dtype(p));
}

}  // namespace boxloss::torch_binding
