// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/dtype.hpp>

#include "../dtypes/half.hpp"
#include "../math/rotated_box.hpp"

namespace boxloss {

/// Calls use(C()) for a problem's compute type C.
template <class Problem, class Use>
void with_compute_type(const Problem& p, const Use& use) {
  if (compute_dtype(p) == DType::kF64) return use(double());
  use(float());
}

/// Calls use(E()) for the element type of a floating dtype whose compute type is C.
template <class C, class Use>
void with_floating_type(DType dtype, const Use& use) {
  if constexpr (sizeof(C) == sizeof(double)) {
    use(double());
  } else {
    if (dtype == DType::kF16) return use(Half());
    if (dtype == DType::kBF16) return use(BFloat16());
    use(float());
  }
}

/// Calls use(B()) for a problem's kind of boxes B, of its compute type.
template <class Problem, class Use>
void with_boxes(const Problem& p, const Use& use) {
  with_compute_type(p, [&](auto compute) {
    using C = decltype(compute);
    if (p.angle_unit.has_value()) return use(RotatedBox<C>());
    use(Box<C>());
  });
}

}  // namespace boxloss
