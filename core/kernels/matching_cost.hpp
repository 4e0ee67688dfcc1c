// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/matching_cost.hpp>
#include <cstdint>

#include "../dtypes/elements.hpp"
#include "../losses/class_cost.hpp"
#include "../losses/cost_entry.hpp"
#include "../losses/formulas.hpp"
#include "../losses/l1.hpp"
#include "../losses/rotated/formulas.hpp"
#include "../math/optimization_barrier.hpp"
#include "../pairings/offsets.hpp"

/// Inputs and outputs of a matcher's cost, for every kind of loop. A block is the queries of one
/// image in one layer, which are compared with that image's columns.
namespace boxloss {

template <class F, class C>
struct CostArgs {
  F formula;
  Constants<C> constants;
  CostWeights<C> weights;
  C l1_weight, angle_weight;  ///< of rotated boxes: see weighted_distance
  bool wants_loss, wants_l1;
  AngleUnit angle_unit;
  Focal<C> focal;
  ClassTerm class_term;
  Boxes<Any> pred, target;
  Elements<Any> scores;
  std::int64_t score_block_stride, score_query_stride;
  std::int64_t classes;
  Indices labels;
  Offsets owners;  ///< of columns
  std::int64_t blocks, queries, columns;
  float* cost;
  bool replaces_nonfinite;
  float nonfinite;

  BOXLOSS_HOST_DEVICE std::int64_t layer_of(std::int64_t block) const {
    return block / owners.images;
  }
  BOXLOSS_HOST_DEVICE std::int64_t image_of(std::int64_t block) const {
    return block % owners.images;
  }
  /// The entries of a query.
  BOXLOSS_HOST_DEVICE float* row(std::int64_t block, std::int64_t query) const {
    return cost + (layer_of(block) * queries + query) * columns;
  }
};

/// A box as it is given, and its corners.
template <class C>
struct alignas(4 * sizeof(float)) CostBox {
  Box<C> values, corners;
};

/// What kernels keep of a box: a rotated one, in radians, has no corners.
template <class F, class C>
using CostBoxOf = std::conditional_t<kIsRotated<F>, RotatedBox<C>, CostBox<C>>;

template <class F, class C>
BOXLOSS_HOST_DEVICE CostBoxOf<F, C> cost_box(const CostArgs<F, C>& a, const Boxes<Any>& boxes,
                                             std::int64_t b, std::int64_t slot) {
  const auto values = boxes.get<BoxOf<F, C>>(b, slot);
  if constexpr (kIsRotated<F>) {
    return in_radians(values, a.angle_unit);
  } else {
    return {values, to_corners(values, boxes.format)};
  }
}

/// For a column without a class term: none is requested, or its label is out of range.
constexpr std::int64_t kNoScore = -1;

/// The index of the score, among a query's, that a column needs.
template <class F, class C>
BOXLOSS_HOST_DEVICE std::int64_t score_of_column(const CostArgs<F, C>& a, std::int64_t column) {
  if (a.class_term == ClassTerm::kNone) return kNoScore;
  if (a.class_term == ClassTerm::kGiven) return column;
  const std::int64_t label = a.labels[column];
  return label >= 0 && label < a.classes ? label : kNoScore;
}

/// The index of a query's first score.
template <class F, class C>
BOXLOSS_HOST_DEVICE std::int64_t first_score(const CostArgs<F, C>& a, std::int64_t block,
                                             std::int64_t query) {
  const std::int64_t outer = a.class_term == ClassTerm::kGiven ? a.layer_of(block) : block;
  return outer * a.score_block_stride + query * a.score_query_stride;
}

/// Reads float32, the most common dtype, without the call that run-time dtypes need.
template <class F, class C>
BOXLOSS_HOST_DEVICE C score_at(const CostArgs<F, C>& a, std::int64_t i) {
  if (a.scores.dtype == DType::kF32) return static_cast<const float*>(a.scores.data)[i];
  return a.scores.template get<C>(i);
}

template <class F, class C>
BOXLOSS_HOST_DEVICE C class_term_of(const CostArgs<F, C>& a, C score) {
  switch (static_cast<ClassTerm>(optimization_barrier(static_cast<int>(a.class_term)))) {
    case ClassTerm::kSoftmax: return softmax_cost(score);
    case ClassTerm::kSigmoid: return sigmoid_cost(score);
    case ClassTerm::kFocal: return focal_cost(score, a.focal);
    default: return score;
  }
}

/// The entry of a query and a column of its image, from its terms.
template <bool kPlain = false, class F, class C>
BOXLOSS_HOST_DEVICE float entry_of(const CostArgs<F, C>& a, C loss, C l1, C class_term) {
  const float entry = static_cast<float>(cost_entry(a.weights, loss, l1, class_term));
  if constexpr (kPlain) return entry;
  const bool is_finite = entry - entry == 0.0f;
  return select(both(a.replaces_nonfinite, !is_finite), a.nonfinite, entry);
}

/// Of rotated boxes, L1 and the angle's term with both weights: cost_args puts these here and sets
/// weights.l1 to 1.
template <class F, class C>
BOXLOSS_HOST_DEVICE C weighted_distance(const CostArgs<F, C>& a, const RotatedBox<C>& query,
                                        const RotatedBox<C>& column) {
  C distance = 0;
  if (a.l1_weight != C(0)) distance = a.l1_weight * l1_value(query, column);
  if (a.angle_weight != C(0)) distance += a.angle_weight * angle_cost(query, column);
  return distance;
}

template <bool kPlain = false, class F, class C>
BOXLOSS_HOST_DEVICE float entry_of(const CostArgs<F, C>& a, const RotatedBox<C>& query,
                                   const RotatedBox<C>& column, C class_term) {
  C loss = 1, l1 = 0;
  if (kPlain || a.wants_loss) loss = a.formula.loss(query, column, a.constants);
  if (kPlain || a.wants_l1) l1 = weighted_distance(a, query, column);
  return entry_of<kPlain>(a, loss, l1, class_term);
}

template <bool kPlain = false, class F, class C>
BOXLOSS_HOST_DEVICE float entry_of(const CostArgs<F, C>& a, const CostBox<C>& query,
                                   const CostBox<C>& column, C class_term) {
  C loss = 1, l1 = 0;
  if (kPlain || a.wants_loss) loss = a.formula.loss(query.corners, column.corners, a.constants);
  if (kPlain || a.wants_l1) l1 = l1_value(query.values, column.values);
  return entry_of<kPlain>(a, loss, l1, class_term);
}

/// The work of one of `lanes` threads on a query: every lanes-th column of the query's image.
template <class F, class C>
BOXLOSS_HOST_DEVICE void cost_row(const CostArgs<F, C>& a, std::int64_t block, std::int64_t q,
                                  int lane, int lanes) {
  const std::int64_t b = a.image_of(block);
  const ImageSlots own = a.owners.image(b);
  const RowRange all = a.owners.rows(b);
  float* const row = a.row(block, q);
  const auto query = cost_box(a, a.pred, block, q);
  const std::int64_t scores = first_score(a, block, q);
  for (std::int64_t t = all.begin + lane; t < all.end; t += lanes) {
    if (t < own.row || t >= own.row + own.count) {
      row[t] = 0;
      continue;
    }
    const std::int64_t at = score_of_column(a, t);
    const C class_term = at == kNoScore ? C(0) : class_term_of(a, score_at(a, scores + at));
    row[t] = entry_of(a, query, cost_box(a, a.target, 0, t), class_term);
  }
}

}  // namespace boxloss
