// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>

#include "pairings/indices.hpp"

namespace boxloss {

/// Each pair says by number which row of pred meets which row of target; null data: pair k has row
/// k. Not a question about the slots of images, as the others are, so it has loops of its own.
struct Indexed {
  std::int64_t sets, pairs;
  Indices pred, target;
};

inline bool is_indexed(const LossProblem& problem) {
  return problem.pairing.kind == Pairing::Kind::kIndexed;
}

}  // namespace boxloss
