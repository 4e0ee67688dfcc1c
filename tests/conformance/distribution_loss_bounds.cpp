// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/max_iou_match.hpp>
#include <cmath>

#include "distribution_loss.hpp"
#include "losses/distribution_loss.hpp"
#include "stored.hpp"

namespace boxloss::conformance {
namespace {

template <class C>
struct BoundedSoftmax {
  std::vector<Bounded<C>> below, exps;  ///< of each bin
  Bounded<C> sum;
};

/// What a side may be, since rounding may turn which bins it lies between: the loss, and the bins'
/// derivatives. The first is the oracle's.
template <class C>
struct BoundedSide {
  Bounded<C> loss;
  std::vector<Bounded<C>> slopes;
};

/// To what another computation may give.
template <class C>
void widen(Bounded<C>& x, const Bounded<C>& other) {
  const double gap = std::fabs(x.value - other.value);
  if (!std::isnan(gap)) x.error = std::fmax(x.error, gap + other.error);
}

template <class C>
class BoundedRows {
 public:
  using B = Bounded<C>;

  explicit BoundedRows(const DistributionLossProblem& p)
      : p_(p),
        is_fgl_(p.mode == DistributionLoss::kFgl),
        temperature_(is_fgl_ ? 1 : p.temperature) {}

  B weight(std::int64_t row) const {
    if (target_of(p_, row) == kNoBox) {
      return number_at<C>(p_.confidence, row % (p_.images * p_.queries));
    }
    return p_.quality.dtype == DType::kNone ? B(1.0) : number_at<C>(p_.quality, row);
  }

  B loss(std::int64_t row) const {
    BoundedSum<C> sum;
    for (int side = 0; side < 4; ++side) sum.add(bounded_side(row, side).loss);
    return sum.total(0) * weight(row) * read_as<C>(temperature_ * temperature_);
  }

  /// But for `by`, which they are multiplied with.
  std::vector<B> slopes(std::int64_t row, const B& by) const {
    const B factor = by * weight(row) * read_as<C>(temperature_);
    std::vector<B> all;
    for (int side = 0; side < 4; ++side) {
      for (const B& each : bounded_side(row, side).slopes) all.push_back(factor * each);
    }
    return all;
  }

 private:
  BoundedSide<C> bounded_side(std::int64_t row, int side) const {
    const BoundedSoftmax<C> own = softmax(p_.logits, row, side);
    if (!is_fgl_) return distilled(own, softmax(p_.teacher, row, side));
    const B offset = offset_of(row, side);
    BoundedSide<C> result;
    for (std::int64_t left = 0; left + 1 < p_.bins; ++left) {
      const Decision is_before = edge(left) <= offset, is_behind = edge(left + 1) <= offset;
      const bool is_first = left == 0, is_last = left + 2 == p_.bins;
      const bool is_the_one = (is_first || is_before.holds) && (is_last || !is_behind.holds);
      const bool may_be = (is_first || is_before.holds || !is_before.is_sure) &&
                          (is_last || !is_behind.holds || !is_behind.is_sure);
      if (is_the_one) result = localized(own, offset, left);
      if (may_be) others_.push_back(localized(own, offset, left));
    }
    for (const BoundedSide<C>& each : others_) {
      widen(result.loss, each.loss);
      for (std::size_t bin = 0; bin < result.slopes.size(); ++bin) {
        widen(result.slopes[bin], each.slopes[bin]);
      }
    }
    others_.clear();
    return result;
  }

  BoundedSoftmax<C> softmax(const CornerView& view, std::int64_t row, int side) const {
    std::vector<B> x;
    for (std::int64_t bin = 0; bin < p_.bins; ++bin) {
      x.push_back(
          number_at<C>({view.data, view.dtype}, first_logit(p_, view, row) + side * p_.bins + bin));
    }
    B largest = x[0];
    for (const B& each : x) {
      if (each.value > largest.value || std::isnan(each.value)) largest = each;
    }
    BoundedSoftmax<C> s;
    BoundedSum<C> sum;
    for (const B& each : x) {
      s.below.push_back((each - largest) * read_as<C>(1 / temperature_));
      s.exps.push_back(exp(s.below.back()));
      sum.add(s.exps.back());
    }
    s.sum = sum.total(roundings());
    return s;
  }

  /// Of the bins of a side, which may be added in C.
  double roundings() const { return static_cast<double>(p_.bins - 1); }

  B edge(std::int64_t bin) const { return number_at<C>(p_.edges, bin); }

  B offset_of(std::int64_t row, int side) const {
    const auto extent = [&](const ArrayView& boxes, std::int64_t of_row) {
      const std::int64_t center = 4 * of_row + side % 2;
      return Extent<B>{number_at<C>(boxes, center), number_at<C>(boxes, center + 2)};
    };
    const Extent<B> reference = extent(p_.reference, row);
    const Extent<B> target = extent(p_.target, target_of(p_, row));
    B offset = side_offset(reference, target, side >= 2, read_as<C>(p_.reg_scale));
    // The oracle adds the same numbers in another order: some six roundings of their size.
    // Where the reference has none, all numbers are kinks, and exact.
    const double distances = std::fabs(reference.center.value) + std::fabs(target.center.value) +
                             std::fabs(target.size.value);
    const double size = distances / std::fabs(reference.size.value) * p_.reg_scale + p_.reg_scale;
    if (std::isfinite(size)) offset.error += 6 * 0x1p-53 * size;
    return within(offset, edge(0), edge(p_.bins - 1));
  }

  /// The oracle's own way to a sum of shares times logarithms: each logarithm has a few roundings
  /// of its size, and the sum's error, of at most two for each bin and some for exps and log.
  B with_oracle(const B& x, double magnitude) const {
    const double own = (2 * static_cast<double>(p_.bins) + 40) * 0x1p-53 * (magnitude + 1);
    return std::isfinite(x.value) ? B(x.value, x.error + own) : x;
  }

  BoundedSide<C> localized(const BoundedSoftmax<C>& own, const B& offset, std::int64_t left) const {
    const BinShares<B> shares = bin_shares(offset, edge(left), edge(left + 1));
    const auto bin = static_cast<std::size_t>(left);
    const B left_below = -own.below[bin], right_below = -own.below[bin + 1];
    const B log_sum = log(own.sum);
    BoundedSide<C> side;
    side.loss = with_oracle(shared_entropy(shares, log_sum, left_below, right_below),
                            2 * log_sum.value + std::fabs(shares.left.value) * left_below.value +
                                std::fabs(shares.right.value) * right_below.value);
    for (std::size_t i = 0; i < own.exps.size(); ++i) {
      const B wanted = i == bin ? shares.left : i == bin + 1 ? shares.right : B(0.0);
      side.slopes.push_back(entropy_slope(shares, own.exps[i] * reciprocal(own.sum), wanted));
    }
    return side;
  }

  BoundedSide<C> distilled(const BoundedSoftmax<C>& own, const BoundedSoftmax<C>& teacher) const {
    const B per_own = reciprocal(own.sum), per_teacher = reciprocal(teacher.sum);
    BoundedSide<C> side;
    BoundedSum<C> parts;
    double magnitude = std::fabs(std::log(own.sum.value)) + std::fabs(std::log(teacher.sum.value));
    for (std::size_t i = 0; i < own.exps.size(); ++i) {
      const B &below = own.below[i], &of_teacher = teacher.below[i];
      parts.add(divergence_part(teacher.exps[i], of_teacher, below));
      magnitude += teacher.exps[i].value * (std::fabs(below.value) + std::fabs(of_teacher.value));
      side.slopes.push_back(own.exps[i] * per_own - teacher.exps[i] * per_teacher);
    }
    side.loss = with_oracle(divergence(parts.total(roundings()), teacher.sum, own.sum), magnitude);
    return side;
  }

  const DistributionLossProblem& p_;
  bool is_fgl_;
  double temperature_;
  mutable std::vector<BoundedSide<C>> others_;
};

/// Of matched queries, and of others: computed in double, with a few roundings on both sides.
template <class C>
std::array<Bounded<C>, 2> scales_of(const HostDistributions& host, std::int64_t set,
                                    const double (&count)[2]) {
  const DistributionLossProblem& p = host.problem;
  const auto in_double = [](double value) {
    return Bounded<C>(value, value == 1 ? 0 : 16 * 0x1p-53 * std::fabs(value));
  };
  if (p.reduction != Reduction::kMean) return {1.0, 1.0};
  if (p.mode == DistributionLoss::kFgl) {
    double divisor = std::fmax(count[0], 1);
    if (p.normalizer.dtype != DType::kNone) {
      if (count[0] == 0) return {0.0, 1.0};
      divisor = host.normalizer.get(set * p.normalizer_stride);
    }
    return {in_double(1 / divisor), 1.0};
  }
  if (count[0] + count[1] == 0) return {0.0, 0.0};
  const auto images = static_cast<double>(p.images);
  const double roots[2] = {std::sqrt(4 * count[0] / images), std::sqrt(4 * count[1] / images)};
  const auto scale = [&](int i) {
    return in_double(roots[i] / (std::fmax(4 * count[i], 1) * (roots[0] + roots[1])));
  };
  return {scale(0), scale(1)};
}

template <class C>
Bounds loss_bounds_in(const HostDistributions& host) {
  const DistributionLossProblem& p = host.problem;
  const DType dtype = compute_dtype(p);
  const BoundedRows<C> rows(p);
  const std::int64_t of_set = p.images * p.queries;
  std::vector<double> losses, scales;
  for (std::int64_t set = 0; set < p.sets; ++set) {
    BoundedSum<C> sums[2];
    double count[2] = {};
    for (std::int64_t row = set * of_set; row < (set + 1) * of_set; ++row) {
      Bounded<C> loss(0.0);
      if (counts(p, row)) {
        const int which = target_of(p, row) >= 0 ? 0 : 1;
        loss = rows.loss(row);
        sums[which].add(loss);
        count[which] += 1;
      }
      if (p.reduction == Reduction::kNone) losses.push_back(stored(loss, dtype));
    }
    const auto scale = scales_of<C>(host, set, count);
    for (const Bounded<C>& each : scale) scales.push_back(stored(each, dtype));
    if (p.reduction == Reduction::kNone) continue;
    losses.push_back(stored(sums[0].total(0) * scale[0] + sums[1].total(0) * scale[1], dtype));
  }
  return {std::move(losses), std::move(scales)};
}

template <class C>
std::vector<double> slope_bounds_in(const HostDistributions& host, const Array& grad,
                                    const Array& scale) {
  const DistributionLossProblem& p = host.problem;
  const BoundedRows<C> rows(p);
  std::vector<double> bounds(static_cast<std::size_t>(query_rows(p) * 4 * p.bins));
  for (std::int64_t row = 0; row < query_rows(p); ++row) {
    if (!counts(p, row)) continue;
    const std::int64_t set = row / (p.images * p.queries);
    const Bounded<C> by = Bounded<C>(grad.get(p.reduction == Reduction::kNone ? row : set)) *
                          Bounded<C>(scale.get(2 * set + (target_of(p, row) >= 0 ? 0 : 1)));
    auto at = bounds.begin() + row * 4 * p.bins;
    for (const Bounded<C>& each : rows.slopes(row, by)) *at++ = stored(each, p.logits.dtype);
  }
  return bounds;
}

}  // namespace

Bounds distribution_loss_bounds(const HostDistributions& host) {
  return compute_dtype(host.problem) == DType::kF64 ? loss_bounds_in<double>(host)
                                                    : loss_bounds_in<float>(host);
}

std::vector<double> distribution_slope_bounds(const HostDistributions& host, const Array& grad,
                                              const Array& scale) {
  return compute_dtype(host.problem) == DType::kF64 ? slope_bounds_in<double>(host, grad, scale)
                                                    : slope_bounds_in<float>(host, grad, scale);
}

}  // namespace boxloss::conformance
