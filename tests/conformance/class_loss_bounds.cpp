// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/max_iou_match.hpp>
#include <cmath>

#include "class_loss.hpp"
#include "dispatch/class_loss.hpp"
#include "stored.hpp"

namespace boxloss::conformance {
namespace {

/// The loss or the slope of each class of a row, weighted; of softmax the last class has all of the
/// loss.
enum class Part { kLoss, kSlope };

/// Of a reduced loss a GPU adds up to 16 neighbours in C first, in four steps: each rounds sums
/// once, and exponentials, which it multiplies, twice.
constexpr double kNeighbours = 8;

template <class C>
class BoundedRows {
 public:
  using B = Bounded<C>;

  explicit BoundedRows(const ClassLossProblem& p) : p_(p), numbers_(class_numbers<B>(p)) {}

  std::vector<B> values(std::int64_t row, Part part) const {
    const std::int64_t own = class_of(p_, row);
    std::vector<B> values(static_cast<std::size_t>(p_.classes));
    if (own == kIgnored) return values;
    std::vector<B> x;
    for (std::int64_t c = 0; c < p_.classes; ++c) {
      x.push_back(number_at<C>({p_.logits.data, p_.logits.dtype},
                               first_logit(p_, p_.logits, row) + c * p_.logits.class_stride));
    }
    if (p_.mode == ClassLoss::kSoftmax) return softmax_values(x, row, part);
    for (std::size_t c = 0; c < x.size(); ++c) {
      const auto of_class = static_cast<std::int64_t>(c);
      const B value =
          of_class == own
              ? (part == Part::kLoss ? own_loss(numbers_, x[c], quality(row))
                                     : own_slope(numbers_, x[c], quality(row)))
              : (part == Part::kLoss ? other_loss(numbers_, x[c]) : other_slope(numbers_, x[c]));
      values[c] = value * weight(of_class);
    }
    return values;
  }

  /// What a row adds to what "mean" divides by.
  B share(std::int64_t row) const {
    const std::int64_t own = class_of(p_, row);
    if (p_.mode != ClassLoss::kSoftmax) return own >= 0 ? 1.0 : 0.0;
    if (own == kIgnored) return 0.0;
    return own >= 0 ? weight(own) : numbers_.no_object_weight * weight(p_.classes - 1);
  }

 private:
  B weight(std::int64_t of_class) const {
    return is_given(p_.weight) ? number_at<C>(p_.weight, of_class) : B(1.0);
  }

  B quality(std::int64_t row) const {
    const Elements<Any> targets{p_.target_index.data, p_.target_index.dtype};
    if (is_given(p_.query_quality)) return number_at<C>(p_.query_quality, row);
    return is_given(p_.quality) ? number_at<C>(p_.quality, targets.get<std::int64_t>(row)) : B(1.0);
  }

  /// Each exp(x - largest) is bounded by its own analysis. On a GPU each of 32 lanes adds up every
  /// 32nd of them, and five steps merge the lanes; where a step finds a larger logit, it multiplies
  /// what it has by the exp of the difference. The differences add up to x - largest, so that their
  /// roundings are in the bound already; to it comes, for each step, exp's own error, a product and
  /// a sum.
  std::vector<B> softmax_values(const std::vector<B>& x, std::int64_t row, Part part) const {
    const std::int64_t own = class_of(p_, row);
    const auto wanted = static_cast<std::size_t>(own == kNoBox ? p_.classes - 1 : own);
    B largest = x[0];
    for (const B& each : x) {
      if (each.value > largest.value || std::isnan(each.value)) largest = each;
    }
    BoundedSum<C> sum;
    std::vector<B> exps;
    for (const B& each : x) {
      exps.push_back(exp(each - largest));
      sum.add(exps.back());
    }
    const double steps = std::ceil(sum.count / 32) + 5;
    const double of_step = (sizeof(C) == sizeof(double) ? 16 : 6) + 2;
    const B total = sum.total(steps * of_step);
    std::vector<B> values(x.size(), B(0.0));
    if (part == Part::kLoss) {
      values.back() = share(row) * (log(total) + (largest - x[wanted]));
      return values;
    }
    for (std::size_t c = 0; c < x.size(); ++c) {
      values[c] = share(row) * (exps[c] * reciprocal(total) - B(c == wanted ? 1.0 : 0.0));
    }
    return values;
  }

  const ClassLossProblem& p_;
  const ClassNumbers<B> numbers_;
};

/// What a set's sum is multiplied by: the oracle divides in double, and 1 / divisor may be rounded
/// to C first.
template <class C>
Bounded<C> scale_of(const HostClasses& host, std::int64_t set, const BoundedSum<C>& shares) {
  const ClassLossProblem& p = host.problem;
  if (p.reduction != Reduction::kMean) return 1.0;
  if (is_given(p.normalizer)) return read_as<C>(1 / host.normalizer.get(set * p.normalizer_stride));
  const bool is_softmax = p.mode == ClassLoss::kSoftmax;
  if (is_softmax ? shares.value == 0 : shares.value <= 1) return 1.0;
  return Bounded<C>(1.0) / shares.total(0);
}

template <class C>
Bounds loss_bounds_in(const HostClasses& host) {
  const ClassLossProblem& p = host.problem;
  const DType dtype = compute_dtype(p);
  const BoundedRows<C> rows(p);
  const std::int64_t of_set = p.images * p.queries;
  std::vector<double> losses, scales;
  for (std::int64_t set = 0; set < p.sets; ++set) {
    BoundedSum<C> loss, shares;
    for (std::int64_t row = set * of_set; row < (set + 1) * of_set; ++row) {
      BoundedSum<C> own;
      for (const Bounded<C>& each : rows.values(row, Part::kLoss)) {
        own.add(each);
        loss.add(each);
      }
      shares.add(rows.share(row));
      if (p.reduction == Reduction::kNone) losses.push_back(stored(own.total(0), dtype));
    }
    const Bounded<C> scale = scale_of(host, set, shares);
    scales.push_back(stored(scale, dtype));
    if (p.reduction == Reduction::kNone) continue;
    losses.push_back(stored(loss.total(kNeighbours) * scale, dtype));
  }
  return {std::move(losses), std::move(scales)};
}

template <class C>
std::vector<double> slope_bounds_in(const HostClasses& host, const Array& grad, const Array& scale,
                                    bool is_transposed) {
  const ClassLossProblem& p = host.problem;
  const BoundedRows<C> rows(p);
  std::vector<double> bounds(static_cast<std::size_t>(query_rows(p) * p.classes));
  for (std::int64_t row = 0; row < query_rows(p); ++row) {
    if (class_of(p, row) == kIgnored) continue;
    const std::int64_t set = row / (p.images * p.queries), image = row / p.queries;
    const Bounded<C> by = Bounded<C>(grad.get(p.reduction == Reduction::kNone ? row : set)) *
                          Bounded<C>(scale.get(set));
    const std::vector<Bounded<C>> slopes = rows.values(row, Part::kSlope);
    for (std::int64_t c = 0; c < p.classes; ++c) {
      const std::int64_t at = is_transposed ? (image * p.classes + c) * p.queries + row % p.queries
                                            : row * p.classes + c;
      bounds[static_cast<std::size_t>(at)] =
          stored(slopes[static_cast<std::size_t>(c)] * by, p.logits.dtype);
    }
  }
  return bounds;
}

}  // namespace

Bounds class_loss_bounds(const HostClasses& host) {
  return compute_dtype(host.problem) == DType::kF64 ? loss_bounds_in<double>(host)
                                                    : loss_bounds_in<float>(host);
}

std::vector<double> class_slope_bounds(const HostClasses& host, const Array& grad,
                                       const Array& scale, bool is_transposed) {
  return compute_dtype(host.problem) == DType::kF64
             ? slope_bounds_in<double>(host, grad, scale, is_transposed)
             : slope_bounds_in<float>(host, grad, scale, is_transposed);
}

}  // namespace boxloss::conformance
