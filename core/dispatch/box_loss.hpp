// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace boxloss
