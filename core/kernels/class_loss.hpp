// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/class_loss.hpp>
#include <boxloss/max_iou_match.hpp>
#include <cstdint>

#include "../dtypes/elements.hpp"
#include "../losses/class_loss.hpp"
#include "../pairings/indices.hpp"

/// Inputs and outputs of a class loss, for every kind of loop. A row is a query of one image in one
/// set, in the order of target_index.
namespace boxloss {

template <class C>
struct ClassArgs {
  ClassNumbers<C> numbers;
  Elements<Any> logits;
  std::int64_t set_stride, image_stride, query_stride, class_stride;
  Indices target_index, labels;
  std::int64_t targets;
  Elements<Any> quality, query_quality, weight;  ///< each with null data where it is not given
  std::int64_t sets, images, queries, classes;

  BOXLOSS_HOST_DEVICE std::int64_t rows_of_set() const { return images * queries; }
  BOXLOSS_HOST_DEVICE std::int64_t rows() const { return sets * rows_of_set(); }
  /// The element of a row's first logit.
  BOXLOSS_HOST_DEVICE std::int64_t first_logit(std::int64_t row) const {
    const std::int64_t block = row / queries, set = block / images;
    return set * set_stride + (block - set * images) * image_stride +
           (row - block * queries) * query_stride;
  }
};

/// What a row is to be.
template <class C>
struct RowTarget {
  std::int64_t own;  ///< its class, or kNoBox or kIgnored
  C quality;
};

template <class C>
BOXLOSS_HOST_DEVICE RowTarget<C> row_target(const ClassArgs<C>& a, std::int64_t row) {
  const std::int64_t target = a.target_index[row];
  if (target == kIgnored) return {kIgnored, C(0)};
  if (target < 0 || target >= a.targets) return {kNoBox, C(0)};
  const std::int64_t label = a.labels[target];
  if (label < 0 || label >= a.classes) return {kNoBox, C(0)};
  C quality = 1;
  if (a.quality.data != nullptr) quality = a.quality.template get<C>(target);
  if (a.query_quality.data != nullptr) quality = a.query_quality.template get<C>(row);
  return {label, quality};
}

template <class C>
BOXLOSS_HOST_DEVICE C weight_of(const ClassArgs<C>& a, std::int64_t of_class) {
  return a.weight.data == nullptr ? C(1) : a.weight.template get<C>(of_class);
}

/// Of softmax: the class that a row is to be, and its weight.
template <class C>
struct SoftmaxTarget {
  std::int64_t wanted;
  C weight;
};

template <class C>
BOXLOSS_HOST_DEVICE SoftmaxTarget<C> softmax_target(const ClassArgs<C>& a, std::int64_t row) {
  const std::int64_t own = row_target(a, row).own;
  if (own == kIgnored) return {0, C(0)};
  if (own != kNoBox) return {own, weight_of(a, own)};
  return {a.classes - 1, a.numbers.no_object_weight * weight_of(a, a.classes - 1)};
}

/// What a row adds to what "mean" divides by.
template <class C>
BOXLOSS_HOST_DEVICE double share_of(const ClassArgs<C>& a, std::int64_t row) {
  if (a.numbers.mode == ClassLoss::kSoftmax) {
    return static_cast<double>(softmax_target(a, row).weight);
  }
  return row_target(a, row).own >= 0 ? 1 : 0;
}

/// A set's sum, and what "mean" divides it by: the number of rows with a box, or their weights.
struct ClassSum {
  double loss, divisor;  // without values of their own: HIP takes none in shared memory
};

/// The outputs of a set.
template <class C>
struct ReducedClassLoss {
  C* loss;  ///< null: not reduced
  C* scale;
  Elements<Any> normalizer;  ///< null data: none
  std::int64_t normalizer_stride;
  bool is_mean, is_softmax;

  BOXLOSS_HOST_DEVICE void write(const ClassSum& sum, std::int64_t set) const {
    double divisor = 1;
    if (is_mean && normalizer.data != nullptr) {
      divisor = normalizer.template get<double>(set * normalizer_stride);
    } else if (is_mean) {
      const bool is_sum = is_softmax ? sum.divisor != 0 : sum.divisor > 1;
      if (is_sum) divisor = sum.divisor;
    }
    scale[set] = static_cast<C>(1 / divisor);
    if (loss != nullptr) loss[set] = static_cast<C>(sum.loss / divisor);
  }
};

}  // namespace boxloss
