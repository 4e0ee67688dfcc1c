// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/dtype.hpp>

namespace boxloss {

/// Calls use(C()) for a problem's compute type C.
template <class Problem, class Use>
void with_compute_type(const Problem& p, const Use& use) {
  if (compute_dtype(p) == DType::kF64) return use(double());
  use(float());
}

}  // namespace boxloss
