// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/giou_loss.hpp>

#include "pairing/dense.hpp"
#include "pairing/lengths.hpp"
#include "pairing/mask.hpp"
#include "pairing/offsets.hpp"
#include "pairing/zero_padded.hpp"

namespace boxloss {

/// Gives `use` the pairing of a problem as the struct that loops are built on.
template <class Use>
void with_pairing(const GiouLossProblem& problem, const Use& use) {
  const Grid grid{problem.pred.slots};
  const ArrayView& data = problem.pairing.data;
  const Indices indices{data.data, data.dtype == DType::kI64};
  switch (problem.pairing.kind) {
    case Pairing::Kind::kDense: return use(Dense{grid});
    case Pairing::Kind::kZeroPadded: return use(ZeroPadded{grid});
    case Pairing::Kind::kLengths: return use(Lengths{grid, indices});
    case Pairing::Kind::kMask: return use(Mask{grid, static_cast<const std::uint8_t*>(data.data)});
    case Pairing::Kind::kOffsets:
      return use(Offsets{problem.pred.images, problem.pred.slots, problem.target.slots, indices});
  }
}

}  // namespace boxloss
