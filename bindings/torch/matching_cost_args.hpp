// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <boxloss/matching_cost.hpp>
#include <vector>

#include "operators.hpp"

/// matching_cost's arguments, for every way that computes it.
namespace boxloss::torch_binding {

struct CostArgs {
  at::Tensor pred;
  at::Tensor target;
  at::Tensor offsets;
  BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_OPTION_MEMBER)

  /// The called function's name, for errors.
  const char* function = "matching_cost";

  auto fields() const {
    return std::tie(pred, target, offsets BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_OPTION_NAME));
  }
};

/// (..., queries, T)
std::vector<c10::SymInt> cost_shape(const CostArgs& a);

/// The problem that the arguments describe, without sizes, strides and pointers, as for a loss.
CostProblem describe(const CostArgs& a);

/// The type that is computed in.
inline at::ScalarType compute_type(const CostProblem& p) {
  return compute_dtype(p) == DType::kF64 ? at::kDouble : at::kFloat;
}

/// By the composite: core's terms in torch's operators.
at::Tensor composite_cost(const CostArgs& a, const CostProblem& p);

}  // namespace boxloss::torch_binding
