// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cpu/native/places.hpp"
#include "cpu/vector/vector_code.hpp"

/// Tiles of pairs that are computed together, and their places in memory.
namespace boxloss::native {

/// Up to kTilePairs valid pairs.
struct Pairs {
  int count;
  Places pred, target;  ///< boxes, in elements of their view
  Places gradient_row;  ///< of pred's gradient, or of one that several pairs add to
  Places row;           ///< of the loss, the weight and the target's gradient
  Places image;         ///< or the set

  Pairs part(int begin, int size) const {
    return {size,
            pred.from(begin),
            target.from(begin),
            gradient_row.from(begin),
            row.from(begin),
            image.from(begin)};
  }
};

/// The same for one pair.
struct PairPlace {
  std::int64_t pred, target, gradient_row, row, image;
};

/// Collects scattered pairs until they fill a tile.
class PairList {
 public:
  PairList() {}  // the arrays are not zeroed

  void add(const PairPlace& place) {
    pred_[count_] = place.pred;
    target_[count_] = place.target;
    gradient_row_[count_] = place.gradient_row;
    row_[count_] = place.row;
    image_[count_] = place.image;
    ++count_;
  }
  bool is_full() const { return count_ == kTilePairs; }

  /// Calls `use` with the pairs, if there are any, and empties the list.
  template <class Use>
  void take(Use& use) {
    if (count_ > 0) {
      use(Pairs{count_,
                {0, 0, pred_},
                {0, 0, target_},
                {0, 0, gradient_row_},
                {0, 0, row_},
                {0, 0, image_}});
    }
    count_ = 0;
  }

 private:
  int count_ = 0;
  std::int64_t pred_[kTilePairs], target_[kTilePairs], gradient_row_[kTilePairs], row_[kTilePairs],
      image_[kTilePairs];
};

}  // namespace boxloss::native
