// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <type_traits>

#include "dispatch/box_loss/with_pairing.hpp"
#include "dtypes/elements.hpp"

namespace boxloss::conformance {

/// A pair that counts: pred (image, slot) and its target; row of the unreduced loss, and the set
/// that it is reduced into. Its incoming gradient is value (grad_image, grad_slot).
struct Pair {
  std::int64_t image, slot, target_image, target_slot, row;
  std::int64_t set, grad_image, grad_slot;
};

/// For pairs by index.
template <class Visit>
void for_each_pair(const PairProblem& p, const Indexed& pairing, const Visit& visit) {
  const auto row_of = [](const Indices& index, std::int64_t k) {
    return index.data == nullptr ? k : index[k];
  };
  const auto is_in = [](std::int64_t row, const BoxView& list) {
    return row >= 0 && row < list.images * list.slots;
  };
  for (std::int64_t k = 0; k < pairing.sets * pairing.pairs; ++k) {
    const std::int64_t pred = row_of(pairing.pred, k), target = row_of(pairing.target, k);
    if (!is_in(pred, p.pred) || !is_in(target, p.target)) continue;
    const std::int64_t set = k / pairing.pairs;
    visit(Pair{pred / p.pred.slots, pred % p.pred.slots, target / p.target.slots,
               target % p.target.slots, k, set, set, k % pairing.pairs});
  }
}

/// Calls visit(pair) for each pair that counts, of a problem on the host.
template <class Problem, class Visit>
void for_each_pair(const Problem& p, const Visit& visit) {
  const Elements<Any> targets{p.target.data, p.target.dtype};
  const bool is_ragged = p.pairing.kind == Pairing::Kind::kOffsets;
  with_pairing(p, [&](const auto& pairing) {
    if constexpr (std::is_same_v<std::decay_t<decltype(pairing)>, Indexed>) {
      for_each_pair(p, pairing, visit);
    } else {
      for (std::int64_t b = 0; b < p.pred.images; ++b) {
        const ImageSlots image = pairing.image(b);
        for (std::int64_t j = 0; j < image.count; ++j) {
          const std::int64_t target_image = is_ragged ? 0 : b, target_slot = image.target + j;
          const Pair pair{b,          j, target_image, target_slot, image.row + j, 0, target_image,
                          target_slot};
          const std::int64_t at =
              target_image * p.target.image_stride + target_slot * p.target.slot_stride;
          using Target =
              std::conditional_t<Problem::kNumbers == 4, Box<double>, RotatedBox<double>>;
          const auto target = targets.get_box<Target>(at, p.target.coordinate_stride);
          if (pairing.counts(pair.row) && pairing.counts(target)) visit(pair);
        }
      }
    }
  });
}

}  // namespace boxloss::conformance
