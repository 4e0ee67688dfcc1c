// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <utility>

#include "box_loss_pairs.hpp"
#include "formula_bounds.hpp"
#include "losses/formulas.hpp"
#include "losses/l1.hpp"

namespace boxloss::conformance {
namespace {

/// As formulas take them.
template <class C>
PairBoxes<C> boxes_of(const LossProblem& p, const Pair& pair) {
  return {corners_of<C>(p.pred, pair.image, pair.slot),
          corners_of<C>(p.target, pair.target_image, pair.target_slot)};
}

template <class C>
RotatedPair<C> boxes_of(const RotatedLossProblem& p, const Pair& pair) {
  return {rotated_box_of<C>(p.pred, p.angle_unit, pair.image, pair.slot),
          rotated_box_of<C>(p.target, p.angle_unit, pair.target_image, pair.target_slot)};
}

template <class C>
PairBoxes<C> given(const LossProblem& p, const Pair& pair) {
  return {values_of<C>(p.pred, pair.image, pair.slot),
          values_of<C>(p.target, pair.target_image, pair.target_slot)};
}

template <class C, class Problem>
Bounded<C> pair_iou(const Problem& p, const Pair& pair) {
  using rotated::overlap;
  const auto boxes = boxes_of<C>(p, pair);
  const Eps<Bounded<C>> eps = bounded_constants<C>(p);
  Bounded<C> iou = computed(boxes, [&] { return iou_of(overlap(boxes.pred, boxes.target, eps)); });
  iou.error += oracle_error(p.loss, boxes);
  return iou;
}

template <class C>
Bounded<C> pair_l1(const LossProblem& p, const Pair& pair) {
  const PairBoxes<C> boxes = given<C>(p, pair);
  return l1_distance(boxes.pred, boxes.target);
}
template <class C>
Bounded<C> pair_l1(const RotatedLossProblem&, const Pair&) {
  return {};
}

template <class C>
Bounded<C> weight_at(const PairProblem& p, std::int64_t row) {
  if (p.weight.data == nullptr) return 1.0;
  return number_at<C>(p.weight, row);
}

/// A sum of n losses that are bounded already: to their bounds comes what adding them rounds off.
/// In double, in any order, that is at most n roundings of sums up to `magnitude`, on both sides.
/// In float it is promised to be no more than 1e-6, however many there are, and a balanced tree of
/// float additions, one level more for each doubling of n, is the worst that we know to keep it.
template <class C>
double adding_error(double n, double magnitude) {
  const double in_double = 2 * n * 0x1p-53;
  if (sizeof(C) == sizeof(double)) return in_double * magnitude;
  return (in_double + std::min(1e-6, (1 + std::ceil(std::log2(n + 1))) * 0x1p-24)) * magnitude;
}

/// What a set's values add up to.
template <class C>
struct Sum {
  double value = 0, magnitude = 0, error = 0;

  void add(const Bounded<C>& x) {
    value += x.value;
    magnitude += std::fabs(x.value);
    error += x.error;
  }
  Bounded<C> total(double n) const {
    return {value, std::isfinite(value) ? error + adding_error<C>(n, magnitude) : error};
  }
};

template <class C>
struct SetSums {
  Sum<C> loss, l1;
  double count = 0;
};

/// What a set's sums are multiplied by: the oracle divides in double, and 1 / divisor may be
/// rounded to C first.
template <class C, class Problem>
Bounded<C> scale_of(const HostPairs<Problem>& host, std::int64_t set, double count) {
  const Problem& p = host.problem;
  double divisor = 1;
  if (p.reduction == Reduction::kMean && count > 0) {
    divisor = p.normalizer.data != nullptr ? host.normalizer.get(set * p.normalizer_stride) : count;
  }
  return read_as<C>(1 / divisor);
}

template <class C, class Problem>
Bounds forward_bounds_in(const HostPairs<Problem>& host) {
  const Problem& p = host.problem;
  const DType dtype = compute_dtype(p);
  const bool has_l1 = all_extras(p).contains(Extra::kL1);
  std::vector<double> losses(static_cast<std::size_t>(loss_rows(p))), scales, l1s = losses,
                                                                              ious = losses;
  std::vector<SetSums<C>> sets(static_cast<std::size_t>(loss_sets(p)));
  for_each_pair(p, [&](const Pair& pair) {
    const auto row = static_cast<std::size_t>(pair.row);
    const Bounded<C> weight = weight_at<C>(p, pair.row);
    const Bounded<C> loss =
        bounded_loss(p.loss, boxes_of<C>(p, pair), bounded_constants<C>(p)) * weight;
    const Bounded<C> l1 = has_l1 ? pair_l1<C>(p, pair) * weight : Bounded<C>();
    losses[row] = stored(loss, dtype);
    l1s[row] = stored(l1, dtype);
    ious[row] = stored(pair_iou<C>(p, pair), dtype);
    SetSums<C>& set = sets[static_cast<std::size_t>(pair.set)];
    set.loss.add(loss);
    set.l1.add(l1);
    set.count += 1;
  });

  const bool is_reduced = p.reduction != Reduction::kNone;
  if (is_reduced) losses = l1s = {};
  for (std::size_t s = 0; s < sets.size(); ++s) {
    const auto& [loss, l1, count] = sets[s];
    const Bounded<C> scale = scale_of<C>(host, static_cast<std::int64_t>(s), count);
    scales.push_back(stored(scale, dtype));
    if (!is_reduced) continue;
    losses.push_back(stored(loss.total(count) * scale, dtype));
    l1s.push_back(stored(l1.total(count) * scale, dtype));
  }
  return {std::move(losses), std::move(scales), std::move(l1s), std::move(ious)};
}

/// One value of a gradient that n pairs may add to, in any order, each sum rounded to the
/// gradient's dtype. With contributions c_i +- e_i, u the unit roundoff and M the sum of all
/// |c_i| + e_i: no sum, of whichever contributions, is larger than M but for what the roundings
/// before it have added, so each rounds by at most u M (1 + u)^(roundings before), and
///   error   sum of e_i + M ((1 + u)^n - 1),
/// whatever the order. Further
///   + u M       contributions may be rounded to that dtype before they are added (double to float)
///   + 2^-53 n M the oracle adds in double
///   + n s       below the normal numbers, s the smallest subnormal, roundings do not shrink
///   + n t       a GPU's atomic addition of floats takes those below the smallest normal t for 0
/// and both sides store what they have.
///
/// Nothing is rounded, so no error is allowed, where all contributions are exact multiples of one
/// power of two and M is no more than the dtype's digits can count of it. NaN stays, and so does
/// infinity without its opposite; else what might overflow in some order determines nothing.
template <class C>
class SharedValue {
 public:
  void add(const Bounded<C>& x) {
    last_ = x;
    ++count_;
    is_nan_ |= std::isnan(x.value) && x.error == 0;
    is_infinite_[x.value > 0] |= std::isinf(x.value) && x.error == 0;
    if (!std::isfinite(x.value) && x.error == 0) return;
    value_ += x.value;
    error_ += std::isnan(x.value) ? kUnbounded : x.error;
    magnitude_ += std::fabs(x.value) + x.error;
    if (x.error == 0) quantum_ = std::fmin(quantum_, lowest_bit(x.value));
  }

  /// Where there is one pair for each value.
  double own_bound(DType dtype) const { return count_ == 0 ? 0 : stored(last_, dtype); }

  double bound(DType dtype) const {
    if (count_ == 0) return 0;
    if (is_nan_ || (is_infinite_[0] && is_infinite_[1])) return 0;
    const Precision precision = precision_of(dtype);
    const double n = count_, u = precision.unit_roundoff();
    const double sums = magnitude_ * std::exp(n * u);
    if (!(error_ < kUnbounded) || (count_ > 1 && !(sums <= precision.largest))) return kUnbounded;
    if (is_infinite_[0] || is_infinite_[1]) return 0;
    const double flushed = dtype == DType::kF32 ? n * precision.smallest_normal : 0;
    const bool is_exact = error_ == 0 && quantum_ >= precision.smallest_normal &&
                          magnitude_ <= std::ldexp(quantum_, precision.digits);
    if (is_exact) return 0;
    if (count_ == 1) return stored(last_, dtype) + flushed;
    const double adding = magnitude_ * (std::expm1(n * std::log1p(u)) + u + n * 0x1p-53) +
                          n * precision.smallest_subnormal;
    return stored(Bounded<C>(value_, error_ + adding + flushed), dtype);
  }

 private:
  /// The largest power of two of which it is a multiple; infinity for 0.
  static double lowest_bit(double x) {
    if (x == 0) return kUnbounded;
    int exponent = 0;
    const double mantissa = std::frexp(std::fabs(x), &exponent);
    auto bits = static_cast<std::uint64_t>(std::ldexp(mantissa, 53));
    for (exponent -= 53; bits % 2 == 0; bits /= 2) ++exponent;
    return std::ldexp(1.0, exponent);
  }

  Bounded<C> last_;
  int count_ = 0;
  bool is_nan_ = false, is_infinite_[2] = {false, false};
  double value_ = 0, error_ = 0, magnitude_ = 0, quantum_ = kUnbounded;
};

/// The gradient of one side's boxes, of which each row may have several pairs where it is indexed.
template <class C, int kNumbers>
class SharedRows {
 public:
  explicit SharedRows(const BoxView& view)
      : view_(view), values_(static_cast<std::size_t>(kNumbers * view.images * view.slots)) {}

  void add(std::int64_t image, std::int64_t slot, const Box<Bounded<C>>& d) {
    add(image, slot, {&d.x1, &d.y1, &d.x2, &d.y2});
  }
  void add(std::int64_t image, std::int64_t slot, const RotatedBox<Bounded<C>>& d) {
    add(image, slot, {&d.cx, &d.cy, &d.w, &d.h, &d.angle});
  }

  std::vector<double> bounds() const {
    const bool is_shared = view_.rows.data != nullptr;
    std::vector<double> list;
    for (const SharedValue<C>& value : values_) {
      list.push_back(is_shared ? value.bound(view_.dtype) : value.own_bound(view_.dtype));
    }
    return list;
  }

 private:
  void add(std::int64_t image, std::int64_t slot,
           std::initializer_list<const Bounded<C>*> numbers) {
    SharedValue<C>* value = values_.data() + kNumbers * (image * view_.slots + slot);
    for (const Bounded<C>* number : numbers) (value++)->add(*number);
  }

  const BoxView& view_;
  std::vector<SharedValue<C>> values_;
};

/// The gradients of a pair of boxes of a problem.
template <class C>
PairGradient<Bounded<C>> gradient_type(const LossProblem&);
template <class C>
RotatedPairGradient<Bounded<C>> gradient_type(const RotatedLossProblem&);
template <class C, class Problem>
using GradientOf = decltype(gradient_type<C>(std::declval<Problem>()));

/// A pair with all that its gradients are made of.
template <class C, class Problem>
struct PairParts {
  Pair pair;
  Bounded<C> weight;
  GradientOf<C, Problem> by_loss, by_l1;  // by a formula's boxes, and by values as they are given
};

template <class C>
PairParts<C, LossProblem> parts_of(const LossProblem& p, const Pair& pair) {
  PairParts<C, LossProblem> parts{pair, weight_at<C>(p, pair.row), {}, {}};
  const PairBoxes<C> boxes = boxes_of<C>(p, pair);
  parts.by_loss = with_formula(p.loss, [&](auto formula) {
    return gradient(formula, boxes.pred, boxes.target, bounded_constants<C>(p));
  });
  if (!all_extras(p).contains(Extra::kL1)) return parts;
  const auto [pred, target] = given<C>(p, pair);
  const Box<Bounded<C>> signs = l1_signs(pred, target);
  parts.by_l1 = {l1_distance(pred, target), signs, Bounded<C>(-1.0) * signs};
  return parts;
}

template <class C>
PairParts<C, RotatedLossProblem> parts_of(const RotatedLossProblem& p, const Pair& pair) {
  PairParts<C, RotatedLossProblem> parts{pair, weight_at<C>(p, pair.row), {}, {}};
  const RotatedPair<C> boxes = boxes_of<C>(p, pair);
  parts.by_loss = with_formula(p.loss, [&](auto formula) {
    return computed(boxes, [&] {
      return formula.derivatives(boxes.pred, boxes.target, bounded_constants<C>(p));
    });
  });
  return parts;
}

/// What one pair adds to the gradients, by the boxes' values and by its weight.
template <class C, class Problem>
struct Share {
  decltype(GradientOf<C, Problem>::pred) pred, target;
  Bounded<C> weight;
};

/// To derivatives by the values as they are given.
template <class C>
void to_given(const LossProblem& p, Share<C, LossProblem>& share) {
  share.pred = from_corners_gradient(share.pred, p.pred.format);
  share.target = from_corners_gradient(share.target, p.target.format);
}
template <class C>
void to_given(const RotatedLossProblem& p, Share<C, RotatedLossProblem>& share) {
  share.pred = from_radians_gradient(share.pred, p.angle_unit);
  share.target = from_radians_gradient(share.target, p.angle_unit);
}

/// A reduced loss has one for each set, and no slots.
double value_of(const PairProblem& p, const Upstream& upstream, const Pair& pair) {
  const bool is_reduced = p.reduction != Reduction::kNone;
  const std::int64_t image = is_reduced ? pair.set : pair.grad_image;
  const std::int64_t slot = is_reduced ? 0 : pair.grad_slot;
  return upstream.values.get(image * upstream.image_stride + slot * upstream.slot_stride);
}

template <class C, class Problem>
Share<C, Problem> share_of(const Problem& p, const GradientOf<C, Problem>& d,
                           const Bounded<C>& weight, const Upstream& upstream, const Array& scale,
                           const Pair& pair) {
  const Bounded<C> incoming =
      Bounded<C>(scale.get(pair.set)) * Bounded<C>(value_of(p, upstream, pair));
  const Bounded<C> by_pair = incoming * weight;
  return {by_pair * d.pred, by_pair * d.target, incoming * d.loss};
}

template <class C, class Problem>
Share<C, Problem> share_of(const Problem& p, const PairParts<C, Problem>& parts,
                           const Upstreams& upstreams, const Array& scale) {
  Share<C, Problem> loss, l1;
  if (upstreams.l1) {
    l1 = share_of<C>(p, parts.by_l1, parts.weight, *upstreams.l1, scale, parts.pair);
    if (!upstreams.loss) return l1;
  }
  loss = share_of<C>(p, parts.by_loss, parts.weight, *upstreams.loss, scale, parts.pair);
  to_given(p, loss);
  if (!upstreams.l1) return loss;
  return {loss.pred + l1.pred, loss.target + l1.target, loss.weight + l1.weight};
}

template <class C, class Problem>
BackwardBoundsOf backward_bounds_in(const HostPairs<Problem>& host) {
  const Problem& p = host.problem;
  const auto pairs = std::make_shared<std::vector<PairParts<C, Problem>>>();
  return [&p, pairs](const Upstreams& upstreams, const Array& scale) {
    if (pairs->empty()) {
      for_each_pair(p, [&](const Pair& pair) { pairs->push_back(parts_of<C>(p, pair)); });
    }
    SharedRows<C, Problem::kNumbers> pred(p.pred), target(p.target);
    std::vector<double> weight(static_cast<std::size_t>(loss_rows(p)));
    for (const PairParts<C, Problem>& parts : *pairs) {
      const Pair& pair = parts.pair;
      const Share<C, Problem> share = share_of(p, parts, upstreams, scale);
      pred.add(pair.image, pair.slot, share.pred);
      target.add(pair.target_image, pair.target_slot, share.target);
      weight[static_cast<std::size_t>(pair.row)] = stored(share.weight, p.weight.dtype);
    }
    return Bounds{pred.bounds(), target.bounds(), std::move(weight)};
  };
}

}  // namespace

template <class Problem>
Bounds forward_bounds(const HostPairs<Problem>& host) {
  return compute_dtype(host.problem) == DType::kF64 ? forward_bounds_in<double>(host)
                                                    : forward_bounds_in<float>(host);
}

template <class Problem>
BackwardBoundsOf backward_bounds(const HostPairs<Problem>& host) {
  return compute_dtype(host.problem) == DType::kF64 ? backward_bounds_in<double>(host)
                                                    : backward_bounds_in<float>(host);
}

template Bounds forward_bounds(const HostLoss&);
template Bounds forward_bounds(const HostPairs<RotatedLossProblem>&);
template BackwardBoundsOf backward_bounds(const HostLoss&);
template BackwardBoundsOf backward_bounds(const HostPairs<RotatedLossProblem>&);

}  // namespace boxloss::conformance
