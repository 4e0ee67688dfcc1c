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
  BOXLOSS_HOST_DEVICE DistributionSum& operator+=(const DistributionSum& other) {
    matched.loss += other.matched.loss;
    matched.count += other.matched.count;
    others.loss += other.others.loss;
    others.count += other.others.count;
    return *this;
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

/// A side's logits where they are, and where its slopes go.
template <class E, class C>
struct PlainSide {
  using Index = std::int64_t;
  Elements<E> values;
  std::int64_t first;
  Outputs<E> slopes;
  std::int64_t first_slope;

  BOXLOSS_HOST_DEVICE C operator[](Index bin) const { return values.template get<C>(first + bin); }
  BOXLOSS_HOST_DEVICE void set(Index bin, C value) const { slopes.set(first_slope + bin, value); }
};

/// A side, and its teacher's, which fgl has none of.
template <class Side>
struct Sides {
  Side own, teacher;
};

template <class E, class C>
BOXLOSS_HOST_DEVICE Sides<PlainSide<E, C>> plain_sides(const DistributionArgs<C>& a,
                                                       std::int64_t row, int side,
                                                       const Outputs<E>& gradient) {
  const std::int64_t in_row = side * a.bins, slope = row * a.logits_of_query() + in_row;
  return {{elements_as<E>(a.logits.values), a.first_of(a.logits, row) + in_row, gradient, slope},
          {elements_as<E>(a.teacher.values), a.first_of(a.teacher, row) + in_row, gradient, slope}};
}

/// As a side counts them.
template <class C, class Side>
BOXLOSS_HOST_DEVICE auto bins_of(const DistributionArgs<C>& a, const Side&) {
  return static_cast<typename Side::Index>(a.bins);
}

/// exp((x - largest) / T) of a side's logits. In a sum of them NaN stays: the largest may be any
/// then.
template <class C>
struct Softmax {
  C largest, per_temperature;

  template <class Side, class Lanes>
  BOXLOSS_HOST_DEVICE Softmax(const DistributionArgs<C>& a, const Side& x, const Lanes& lanes)
      : largest(lanes.template largest<C>(bins_of(a, x), [&](auto bin) { return x[bin]; })),
        per_temperature(a.per_temperature) {}

  BOXLOSS_HOST_DEVICE C below(C x) const { return (x - largest) * per_temperature; }
  BOXLOSS_HOST_DEVICE C exp_of(C x) const { return exp(below(x)); }
  template <class Side, class Lanes>
  BOXLOSS_HOST_DEVICE C sum(const DistributionArgs<C>& a, const Side& x, const Lanes& lanes) const {
    return lanes.share(
        lanes.template sum<C>(bins_of(a, x), [&](auto bin) { return exp_of(x[bin]); }));
  }
};

template <class C, class Side, class Lanes>
BOXLOSS_HOST_DEVICE C entropy(const DistributionArgs<C>& a, const Side& x,
                              const WantedBins<C>& wanted, const Lanes& lanes) {
  const Softmax<C> s(a, x, lanes);
  const C sum = s.sum(a, x, lanes);
  const auto left = static_cast<typename Side::Index>(wanted.left);
  return shared_entropy(wanted.shares, log(sum), s.largest - x[left], s.largest - x[left + 1]);
}

/// What a divergence is made of, in one pass over the bins.
template <class C>
struct DivergenceSums {
  C own, teacher, parts;

  BOXLOSS_HOST_DEVICE DivergenceSums& operator+=(const DivergenceSums& other) {
    own += other.own;
    teacher += other.teacher;
    parts += other.parts;
    return *this;
  }
};

template <class C, class Side, class Lanes>
BOXLOSS_HOST_DEVICE C divergence_of(const DistributionArgs<C>& a, const Sides<Side>& x,
                                    const Lanes& lanes) {
  using Sums = DivergenceSums<C>;
  const Softmax<C> own(a, x.own, lanes), teacher(a, x.teacher, lanes);
  const Sums sums = lanes.template sum<Sums>(bins_of(a, x.own), [&](auto bin) -> Sums {
    const C below = own.below(x.own[bin]), teacher_below = teacher.below(x.teacher[bin]);
    const C teacher_exp = exp(teacher_below);
    return {exp(below), teacher_exp, divergence_part(teacher_exp, teacher_below, below)};
  });
  return divergence(sums.parts, sums.teacher, sums.own);
}

/// The loss of a side of a row that counts, by the lanes that take it; in the first of them.
template <class C, class Side, class Lanes>
BOXLOSS_HOST_DEVICE C side_loss(const DistributionArgs<C>& a, std::int64_t row, std::int64_t target,
                                int side, const Sides<Side>& x, const Lanes& lanes) {
  if (!a.is_fgl()) return divergence_of(a, x, lanes);
  return entropy(a, x.own, wanted_bins(a, row, target, side), lanes);
}

/// Writes the slopes of a side of a row that counts.
template <class C, class Side, class Lanes>
BOXLOSS_HOST_DEVICE void set_slopes(const DistributionArgs<C>& a, std::int64_t row,
                                    const RowPart<C>& part, C by, int side, const Sides<Side>& x,
                                    const Lanes& lanes) {
  const Softmax<C> own(a, x.own, lanes);
  const C per_sum = reciprocal(own.sum(a, x.own, lanes));
  if (a.is_fgl()) {
    const WantedBins<C> wanted = wanted_bins(a, row, part.target, side);
    return lanes.for_each(bins_of(a, x.own), [&](auto bin) {
      const C p = own.exp_of(x.own[bin]) * per_sum;
      x.own.set(bin, by * entropy_slope(wanted.shares, p, wanted.share_of(bin)));
    });
  }
  const Softmax<C> teacher(a, x.teacher, lanes);
  const C per_teacher = reciprocal(teacher.sum(a, x.teacher, lanes));
  lanes.for_each(bins_of(a, x.own), [&](auto bin) {
    const C p = own.exp_of(x.own[bin]) * per_sum;
    x.own.set(bin, by * (p - teacher.exp_of(x.teacher[bin]) * per_teacher));
  });
}

/// The loss of a row that counts, given its sides' sum, which joins its set's.
template <class C>
BOXLOSS_HOST_DEVICE double add_row(const DistributionArgs<C>& a, std::int64_t row,
                                   std::int64_t target, double sides, DistributionSum& sum) {
  const RowPart<C> part = row_part(a, row, target);
  const double loss = static_cast<double>(part.weight) * static_cast<double>(a.loss_factor) * sides;
  sum.add(part.is_matched(), loss);
  return loss;
}

}  // namespace boxloss
