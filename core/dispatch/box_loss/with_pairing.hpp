// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/set.hpp>

#include "../../pairings/grid.hpp"
#include "../../pairings/indexed.hpp"
#include "../../pairings/offsets.hpp"

namespace boxloss {

/// The pairings that with_pairing supports.
constexpr Set<Pairing::Kind> kPairings = {Pairing::Kind::kDense,   Pairing::Kind::kZeroPadded,
                                          Pairing::Kind::kLengths, Pairing::Kind::kMask,
                                          Pairing::Kind::kOffsets, Pairing::Kind::kIndexed};

/// Calls `use` with a problem's pairing as the struct that loops are built on.
template <class Use>
void with_pairing(const PairProblem& problem, const Use& use) {
  const Grid grid{problem.pred.slots};
  const ArrayView& data = problem.pairing.data;
  switch (problem.pairing.kind) {
    case Pairing::Kind::kDense: return use(Dense{grid});
    case Pairing::Kind::kZeroPadded: return use(ZeroPadded{grid});
    case Pairing::Kind::kLengths: return use(Lengths{grid, indices(data)});
    case Pairing::Kind::kMask: return use(Mask{grid, static_cast<const std::uint8_t*>(data.data)});
    case Pairing::Kind::kOffsets:
      return use(
          Offsets{problem.pred.images, problem.pred.slots, problem.target.slots, indices(data)});
    case Pairing::Kind::kIndexed: return use(indexed(problem));
  }
}

}  // namespace boxloss
