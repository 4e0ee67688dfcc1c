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

/// The class of the box that target_index names, or kNoBox or kIgnored.
template <class C>
BOXLOSS_HOST_DEVICE std::int64_t class_of_target(const ClassArgs<C>& a, std::int64_t target) {
  if (target == kIgnored) return kIgnored;
  if (target < 0 || target >= a.targets) return kNoBox;
  const std::int64_t label = a.labels[target];
  return label < 0 || label >= a.classes ? kNoBox : label;
}

template <class C>
BOXLOSS_HOST_DEVICE RowTarget<C> row_target(const ClassArgs<C>& a, std::int64_t row) {
  const std::int64_t target = a.target_index[row], own = class_of_target(a, target);
  if (own < 0) return {own, C(0)};
  C quality = 1;
  if (a.quality.data != nullptr) quality = a.quality.template get<C>(target);
  if (a.query_quality.data != nullptr) quality = a.query_quality.template get<C>(row);
  return {own, quality};
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

  BOXLOSS_HOST_DEVICE ClassSum& operator+=(const ClassSum& other) {
    loss += other.loss;
    divisor += other.divisor;
    return *this;
  }
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

/// A row's logits, of element type E.
template <class E, class C>
struct RowLogits {
  const E* data;
  std::int64_t stride;

  BOXLOSS_HOST_DEVICE RowLogits(const ClassArgs<C>& a, std::int64_t row)
      : data(static_cast<const E*>(a.logits.data) + a.first_logit(row)), stride(a.class_stride) {}
  BOXLOSS_HOST_DEVICE C operator[](std::int64_t c) const { return convert_to<C>(data[c * stride]); }
};

/// What a set's gradients are multiplied by, or those of a row.
template <class C>
struct ClassGrad {
  const C *grad, *scale;
  bool is_reduced, is_transposed;

  /// 0 for a row that is left out, whatever comes in.
  BOXLOSS_HOST_DEVICE C by(std::int64_t set, std::int64_t row, const RowTarget<C>& target) const {
    return target.own == kIgnored ? C(0) : grad[is_reduced ? set : row] * scale[set];
  }
};

/// Where a row's gradient is written.
template <class E>
struct RowGradient {
  E* data;
  std::int64_t stride;

  template <class C>
  BOXLOSS_HOST_DEVICE RowGradient(const ClassArgs<C>& a, std::int64_t row, bool is_transposed,
                                  E* gradient)
      : stride(is_transposed ? a.queries : 1) {
    const std::int64_t block = row / a.queries;
    data = gradient + (is_transposed ? block * a.classes * a.queries + (row - block * a.queries)
                                     : row * a.classes);
  }
  template <class C>
  BOXLOSS_HOST_DEVICE void set(std::int64_t c, C value) const {
    assign(data[c * stride], value);
  }
};

/// A logit's loss or slope, weighted, of a class of a row with that target.
template <bool kSlope, class C>
BOXLOSS_HOST_DEVICE C value_of(const ClassArgs<C>& a, const RowTarget<C>& target, std::int64_t c,
                               C x) {
  if (target.own == kIgnored) return C(0);
  C value;
  if (c == target.own) {
    value =
        kSlope ? own_slope(a.numbers, x, target.quality) : own_loss(a.numbers, x, target.quality);
  } else {
    value = kSlope ? other_slope(a.numbers, x) : other_loss(a.numbers, x);
  }
  return value * weight_of(a, c);
}

/// Of a row's logits: the largest, and the sum of exp(x - largest), which `lanes` can share.
template <class C>
struct Exps {
  C largest, sum;
};

template <class E, class C, class Lanes>
BOXLOSS_HOST_DEVICE Exps<C> exps_of(const RowLogits<E, C>& x, std::int64_t classes,
                                    const Lanes& lanes) {
  const C largest = lanes.template largest<C>(classes, [&x](std::int64_t c) { return x[c]; });
  return {largest, lanes.template sum<C>(
                       classes, [&x, largest](std::int64_t c) { return exp(x[c] - largest); })};
}

/// The loss of a row, by the lanes that take it; in the first of them.
template <class E, class C, class Lanes>
BOXLOSS_HOST_DEVICE double row_loss(const ClassArgs<C>& a, std::int64_t row, const Lanes& lanes) {
  const RowTarget<C> target = row_target(a, row);
  const RowLogits<E, C> x(a, row);
  if (a.numbers.mode != ClassLoss::kSoftmax) {
    return lanes.template sum<double>(a.classes, [&](std::int64_t c) {
      return static_cast<double>(value_of<false>(a, target, c, x[c]));
    });
  }
  const Exps<C> exps = exps_of(x, a.classes, lanes);
  const SoftmaxTarget<C> wanted = softmax_target(a, row);
  const double loss = static_cast<double>(log(exps.sum)) +
                      (static_cast<double>(exps.largest) - static_cast<double>(x[wanted.wanted]));
  return target.own == kIgnored ? 0 : static_cast<double>(wanted.weight) * loss;
}

/// Writes the slopes of a row.
template <class E, class C, class Lanes>
BOXLOSS_HOST_DEVICE void write_row_slopes(const ClassArgs<C>& a, std::int64_t row,
                                          const ClassGrad<C>& grad, E* gradient,
                                          const Lanes& lanes) {
  const RowTarget<C> target = row_target(a, row);
  const RowLogits<E, C> x(a, row);
  const RowGradient<E> written(a, row, grad.is_transposed, gradient);
  const C by = grad.by(row / a.rows_of_set(), row, target);
  if (a.numbers.mode != ClassLoss::kSoftmax) {
    return lanes.for_each(a.classes, [&](std::int64_t c) {
      written.set(c, by * value_of<true>(a, target, c, x[c]));
    });
  }
  const SoftmaxTarget<C> wanted = softmax_target(a, row);
  const Exps<C> exps = exps_of(x, a.classes, lanes);
  const C scale = C(1) / lanes.share(exps.sum);
  lanes.for_each(a.classes, [&](std::int64_t c) {
    const C distance = exp(x[c] - exps.largest) * scale - (c == wanted.wanted ? C(1) : C(0));
    written.set(c, by * (target.own == kIgnored ? C(0) : wanted.weight * distance));
  });
}

}  // namespace boxloss
