// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>

#include "indices.hpp"

namespace boxloss {

/// Pairs by index: the rows of pred and target that each pair reads; with null data pair k reads
/// row k. Unlike the other pairings it is not about slots of images, and has loops of its own.
struct Indexed {
  std::int64_t sets, pairs;
  Indices pred, target;
};

inline bool is_indexed(const PairProblem& problem) {
  return problem.pairing.kind == Pairing::Kind::kIndexed;
}

inline Indexed indexed(const PairProblem& p) {
  return {p.pairing.sets, p.pairing.pairs, indices(p.pred.rows), indices(p.target.rows)};
}

}  // namespace boxloss
