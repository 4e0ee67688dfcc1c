// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/distribution_loss.hpp>
#include <boxloss/max_iou_match.hpp>
#include <cstdint>

#include "../dtypes/elements.hpp"
#include "../losses/distribution_loss.hpp"
#include "../pairings/indices.hpp"

/// Inputs and outputs of a loss of distributions, for every kind of loop. A row is a query of one
/// image in one set, in the order of target_index; its sides are 0 to 3.
namespace boxloss {

constexpr int kSides = 4;

/// A CornerView.
struct Corners {
  Elements<Any> values;
  std::int64_t set_stride, image_stride, query_stride;
};

template <class C>
struct DistributionArgs {
  DistributionLoss mode;
  Corners logits, teacher;
  Indices target_index;
  std::int64_t last_target;  ///< of ddf no index is beyond it
  /// Each with null data where it is not given.
  Elements<Any> quality, reference, target, edges, confidence;
  C reg_scale;
  C per_temperature;  ///< 1 / T; 1 of kFgl
  C loss_factor;      ///< of what sides add up to: T^2; 1 of kFgl
  C slope_factor;     ///< of what logits' derivatives are without the temperature: T; 1 of kFgl
  std::int64_t sets, images, queries, bins;

  BOXLOSS_HOST_DEVICE bool is_fgl() const { return mode == DistributionLoss::kFgl; }
  BOXLOSS_HOST_DEVICE std::int64_t logits_of_query() const { return kSides * bins; }
  BOXLOSS_HOST_DEVICE std::int64_t rows_of_set() const { return images * queries; }
  BOXLOSS_HOST_DEVICE std::int64_t rows() const { return sets * rows_of_set(); }
  /// The element of a row's first logit.
  BOXLOSS_HOST_DEVICE std::int64_t first_of(const Corners& corners, std::int64_t row) const {
    const std::int64_t block = row / queries, set = block / images;
    return set * corners.set_stride + (block - set * images) * corners.image_stride +
           (row - block * queries) * corners.query_stride;
  }
};

/// A row's row of targets, or kNoBox or kIgnored.
template <class C>
BOXLOSS_HOST_DEVICE std::int64_t target_of(const DistributionArgs<C>& a, std::int64_t row) {
  const std::int64_t given = a.target_index[row];
  return given == kIgnored || (given >= 0 && given <= a.last_target) ? given : kNoBox;
}

/// Whether a row with that target has a loss; else nothing more of it is read.
template <class C>
BOXLOSS_HOST_DEVICE bool counts(const DistributionArgs<C>& a, std::int64_t target) {
  return target >= 0 || (target == kNoBox && !a.is_fgl());
}

/// What a row that counts is.
template <class C>
struct RowPart {
  std::int64_t target;
  C weight;  ///< of its loss

  BOXLOSS_HOST_DEVICE bool is_matched() const { return target >= 0; }
};

template <class C>
BOXLOSS_HOST_DEVICE RowPart<C> row_part(const DistributionArgs<C>& a, std::int64_t row,
                                        std::int64_t target) {
  if (target < 0) return {target, a.confidence.template get<C>(row % a.rows_of_set())};
  return {target, a.quality.data == nullptr ? C(1) : a.quality.template get<C>(row)};
}

/// The two bins that a side lies between.
template <class C>
struct WantedBins {
  std::int64_t left;  ///< the other is the next
  BinShares<C> shares;

  /// How much is to be in a bin.
  BOXLOSS_HOST_DEVICE C share_of(std::int64_t bin) const {
    return bin == left ? shares.left : bin == left + 1 ? shares.right : C(0);
  }
};

template <class C>
BOXLOSS_HOST_DEVICE Extent<C> extent_of(const Elements<Any>& boxes, std::int64_t row, int side) {
  const std::int64_t center = 4 * row + side % 2;
  return {boxes.template get<C>(center), boxes.template get<C>(center + 2)};
}

template <class C>
BOXLOSS_HOST_DEVICE WantedBins<C> wanted_bins(const DistributionArgs<C>& a, std::int64_t row,
                                              std::int64_t target, int side) {
  const auto edge = [&a](std::int64_t i) { return a.edges.template get<C>(i); };
  const C given = side_offset(extent_of<C>(a.reference, row, side),
                              extent_of<C>(a.target, target, side), side >= 2, a.reg_scale);
  const C offset = within(given, edge(0), edge(a.bins - 1));
  // The last edge but one at most that is not beyond the offset; the first one for NaN.
  std::int64_t left = 0, end = a.bins - 1;
  while (end - left > 1) {
    const std::int64_t middle = left + (end - left) / 2;
    const bool is_beyond = !(edge(middle) <= offset);
    left = is_beyond ? left : middle;
    end = is_beyond ? middle : end;
  }
  return {left, bin_shares(offset, edge(left), edge(left + 1))};
}

/// Sums of a set's losses, and numbers of queries that count.
struct DistributionSum {
  struct Part {
    double loss, count;  // without values of their own: HIP takes none in shared memory
  };
  Part matched, others;

  BOXLOSS_HOST_DEVICE void add(bool is_matched, double loss) {
    Part& part = is_matched ? matched : others;
    part.loss += loss;
    part.count += 1;
  }
  BOXLOSS_HOST_DEVICE void add(const DistributionSum& other) {
    matched.loss += other.matched.loss;
    matched.count += other.matched.count;
    others.loss += other.others.loss;
    others.count += other.others.count;
  }
};

/// The outputs of a set.
template <class C>
struct ReducedDistributionLoss {
  C* loss;  ///< null: not reduced
  C* scale;
  Elements<Any> normalizer;  ///< null data: none
  std::int64_t normalizer_stride;
  bool is_mean, is_fgl;

  BOXLOSS_HOST_DEVICE void write(const DistributionSum& sum, std::int64_t set) const {
    double matched = 1, others = 1;
    if (is_mean && normalizer.data != nullptr) {
      // Without matched queries the loss is 0, whatever the normalizer is.
      const double divisor = normalizer.template get<double>(set * normalizer_stride);
      matched = sum.matched.count > 0 ? 1 / divisor : 0;
    } else if (is_mean && is_fgl) {
      matched = 1 / at_least(sum.matched.count, 1.0);
    } else if (is_mean) {
      // The source's mean: the number of images cancels, and so does one root of the count.
      const double of_matched = sqrt(sum.matched.count), of_others = sqrt(sum.others.count);
      matched = share(of_matched, of_matched + of_others);
      others = share(of_others, of_matched + of_others);
    }
    scale[2 * set] = static_cast<C>(matched);
    scale[2 * set + 1] = static_cast<C>(others);
    if (loss == nullptr) return;
    loss[set] = static_cast<C>(sum.matched.loss * matched + sum.others.loss * others);
  }

 private:
  BOXLOSS_HOST_DEVICE static double share(double root, double roots) {
    return root > 0 ? 1 / (kSides * root * roots) : 0;
  }
};

/// What gradients are multiplied by.
template <class C>
struct DistributionGrad {
  const C *grad, *scale;
  bool is_reduced;

  BOXLOSS_HOST_DEVICE C by(const DistributionArgs<C>& a, std::int64_t row,
                           const RowPart<C>& part) const {
    const std::int64_t set = row / a.rows_of_set();
    return grad[is_reduced ? set : row] * scale[2 * set + (part.is_matched() ? 0 : 1)] *
           part.weight * a.slope_factor;
  }
};

}  // namespace boxloss
