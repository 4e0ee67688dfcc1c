// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>

#include "dtypes/elements.hpp"
#include "pairings/with_pairing.hpp"

namespace boxloss::conformance {

/// A pair that counts: pred (image, slot) and its target; row of the unreduced loss.
struct Pair {
  std::int64_t image, slot, target_image, target_slot, row;
};

/// Calls visit(pair) for each pair that counts, of a problem on the host.
template <class Visit>
void for_each_pair(const LossProblem& p, const Visit& visit) {
  const Elements<Any> targets{p.target.data, p.target.dtype};
  const bool is_ragged = p.pairing.kind == Pairing::Kind::kOffsets;
  with_pairing(p, [&](const auto& pairing) {
    for (std::int64_t b = 0; b < p.pred.images; ++b) {
      const ImageSlots image = pairing.image(b);
      for (std::int64_t j = 0; j < image.count; ++j) {
        const Pair pair{b, j, is_ragged ? 0 : b, image.target + j, image.row + j};
        const std::int64_t at =
            pair.target_image * p.target.image_stride + pair.target_slot * p.target.slot_stride;
        if (pairing.counts(pair.row) && pairing.counts(targets.get_box<double>(at))) visit(pair);
      }
    }
  });
}

}  // namespace boxloss::conformance
