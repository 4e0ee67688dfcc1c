// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/dtype.hpp>

#include "../math/rotated_box.hpp"

namespace boxloss {

/// Calls use(C()) for a problem's compute type C.
template <class Problem, class Use>
void with_compute_type(const Problem& p, const Use& use) {
  if (compute_dtype(p) == DType::kF64) return use(double());
  use(float());
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
