// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/rotated_box_loss.hpp>

#include "../pairings/any_slots.hpp"
#include "box_loss/with_dtypes.hpp"
#include "box_loss/with_pairing.hpp"
#include "box_loss/zero_outputs.hpp"

namespace boxloss {

/// Calls launch(dtypes, pairing); or, without slots, zeroes the outputs by zero(pointer, bytes).
template <class Written, class Zero, class Launch>
void dispatch(const LossProblem& p, const Written& outputs, const Zero& zero,
              const Launch& launch) {
  if (!has_slots(p)) return zero_outputs(p, outputs, zero);
  with_dtypes(p, [&](auto dtypes) {
    with_pairing(p, [&](const auto& pairing) { launch(dtypes, pairing); });
  });
}

/// The same, with few instantiations: formulas of rotated boxes take far longer than what these
/// save.
template <class Written, class Zero, class Launch>
void dispatch(const RotatedLossProblem& p, const Written& outputs, const Zero& zero,
              const Launch& launch) {
  if (!has_slots(p)) return zero_outputs(p, outputs, zero);
  const auto with_compute = [&](auto dtypes) {
    if (is_indexed(p)) return launch(dtypes, indexed(p));
    launch(dtypes, any_slots(p));
  };
  const bool are_floats = p.pred.dtype == DType::kF32 && p.target.dtype == DType::kF32;
  if (are_floats) return with_compute(DTypes<float, float, float>());
  if (compute_dtype(p) == DType::kF64) return with_compute(DTypes<Any, Any, double>());
  with_compute(DTypes<Any, Any, float>());
}

}  // namespace boxloss
