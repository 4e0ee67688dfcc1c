// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>

#include "../../dtypes/elements.hpp"

namespace boxloss {

/// Element types of pred and target, and the compute type, as a tag.
template <class P, class T, class C>
struct DTypes {
  using Pred = P;
  using Target = T;
  using Compute = C;
};

/// Calls `use` with the element types of a problem. The common pairs in training have their own
/// instantiations; every other mix is read through Any, so that their number stays small.
template <class Use>
void with_dtypes(const PairProblem& problem, const Use& use) {
  const auto is = [&](DType pred, DType target) {
    return problem.pred.dtype == pred && problem.target.dtype == target;
  };
  if (is(DType::kF32, DType::kF32)) return use(DTypes<float, float, float>());
  if (is(DType::kBF16, DType::kF32)) return use(DTypes<BFloat16, float, float>());
  if (is(DType::kF16, DType::kF32)) return use(DTypes<Half, float, float>());
  if (is(DType::kBF16, DType::kBF16)) return use(DTypes<BFloat16, BFloat16, float>());
  if (is(DType::kBF16, DType::kU8)) return use(DTypes<BFloat16, std::uint8_t, float>());
  if (is(DType::kF16, DType::kU8)) return use(DTypes<Half, std::uint8_t, float>());
  if (is(DType::kF32, DType::kU8)) return use(DTypes<float, std::uint8_t, float>());
  if (is(DType::kF64, DType::kF64)) return use(DTypes<double, double, double>());
  if (compute_dtype(problem) == DType::kF64) return use(DTypes<Any, Any, double>());
  use(DTypes<Any, Any, float>());
}

}  // namespace boxloss
