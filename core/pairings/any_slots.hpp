// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>

#include "../math/optimization_barrier.hpp"
#include "grid.hpp"
#include "offsets.hpp"

namespace boxloss {

/// A pairing of slots that is selected at run time: one loop for all, where a formula is so long
/// that this costs nothing beside it.
struct AnySlots {
  Pairing::Kind kind;
  Offsets offsets;  ///< its `offsets` are the lengths of kLengths
  const std::uint8_t* mask;

  BOXLOSS_HOST_DEVICE ImageSlots image(std::int64_t b) const {
    switch (kind) {  // -Wswitch tells of a new pairing, for which the rest may change, too
      case Pairing::Kind::kOffsets: return offsets.image(b);
      case Pairing::Kind::kLengths: return Lengths{grid(), offsets.offsets}.image(b);
      case Pairing::Kind::kDense:
      case Pairing::Kind::kZeroPadded:
      case Pairing::Kind::kMask:
      case Pairing::Kind::kIndexed: break;
    }
    return grid().image(b);
  }
  BOXLOSS_HOST_DEVICE RowRange rows(std::int64_t b) const {
    return kind == Pairing::Kind::kOffsets ? offsets.rows(b) : grid().rows(b);
  }
  BOXLOSS_HOST_DEVICE bool counts(std::int64_t row) const {
    return here() != Pairing::Kind::kMask || mask[row] != 0;
  }
  template <class T>
  BOXLOSS_HOST_DEVICE bool counts(const RotatedBox<T>& target) const {
    return here() != Pairing::Kind::kZeroPadded || ZeroPadded{grid()}.counts(target);
  }

 private:
  BOXLOSS_HOST_DEVICE Grid grid() const { return {offsets.slots}; }
  BOXLOSS_HOST_DEVICE Pairing::Kind here() const {
    return static_cast<Pairing::Kind>(optimization_barrier(static_cast<int>(kind)));
  }
};

inline AnySlots any_slots(const PairProblem& p) {
  const ArrayView& data = p.pairing.data;
  return {p.pairing.kind,
          {p.pred.images, p.pred.slots, p.target.slots, indices(data)},
          static_cast<const std::uint8_t*>(data.data)};
}

}  // namespace boxloss
