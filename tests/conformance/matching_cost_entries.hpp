// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/matching_cost.hpp>

#include "dtypes/elements.hpp"

namespace boxloss::conformance {

/// An entry of a column that an image owns: pred is (block, query), target row `column`.
struct CostEntry {
  std::int64_t layer, block, query, column;

  std::int64_t at(const PairwiseProblem& p) const {
    return (layer * p.pred.slots + query) * p.target.slots + column;
  }
};

inline bool reads_classes(const PairwiseProblem& p) {
  return p.class_term != ClassTerm::kNone && p.class_weight != 0;
}

/// The class that a column's label names, or -1.
inline std::int64_t class_of(const PairwiseProblem& p, std::int64_t column) {
  const auto label = Elements<Any>{p.labels.data, p.labels.dtype}.get<std::int64_t>(column);
  return 0 <= label && label < p.classes ? label : -1;
}

/// Where the scores of an entry's query begin.
inline std::int64_t first_score(const PairwiseProblem& p, const CostEntry& entry) {
  const std::int64_t block = p.class_term == ClassTerm::kGiven ? entry.layer : entry.block;
  return block * p.scores.block_stride + entry.query * p.scores.query_stride;
}

/// Calls visit(entry) for each entry of a problem on the host whose column has an image.
template <class Visit>
void for_each_entry(const PairwiseProblem& p, const Visit& visit) {
  const Elements<Any> offsets{p.offsets.data, p.offsets.dtype};
  const std::int64_t images = p.pred.images / p.layers;
  const auto offset = [&](std::int64_t b, std::int64_t least) {
    return std::clamp(offsets.get<std::int64_t>(b), least, p.target.slots);
  };
  for (std::int64_t b = 0; b < images; ++b) {
    const std::int64_t begin = offset(b, 0), end = offset(b + 1, begin);
    for (std::int64_t layer = 0; layer < p.layers; ++layer) {
      for (std::int64_t q = 0; q < p.pred.slots; ++q) {
        for (std::int64_t t = begin; t < end; ++t)
          visit(CostEntry{layer, layer * images + b, q, t});
      }
    }
  }
}

}  // namespace boxloss::conformance
