// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "matching_cost.hpp"

#include <cmath>

#include "formula_bounds.hpp"
#include "losses/class_cost.hpp"
#include "losses/cost_entry.hpp"
#include "losses/l1.hpp"
#include "matching_cost_entries.hpp"

namespace boxloss::conformance {
namespace {

/// Focal's x^gamma: in [0, 1], and the larger the larger x is, however little is known of x. Of
/// what rounding may take for 0 the logarithm alone is not bounded.
template <class C>
struct BoundedPower {
  Bounded<C> gamma;

  Bounded<C> operator()(const Bounded<C>& x) const {
    const Bounded<C> power = Power<Bounded<C>>{gamma}(x);
    const double reach = x.value + x.error;
    if (power.error < kUnbounded || !(reach < 0.5) || gamma.value == 0) return power;
    // Below a half the logarithm is firm enough for 1.01 to cover what it and exp round off.
    const double most = 1.01 * std::pow(reach, gamma.value - gamma.error) + 1.7e-38;
    return {std::pow(std::fmax(x.value, 0), gamma.value), most};
  }
};

template <class C>
PairBoxes<C> boxes_of(const CostProblem& p, const CostEntry& entry) {
  return {corners_of<C>(p.pred, entry.block, entry.query),
          corners_of<C>(p.target, 0, entry.column)};
}

template <class C>
Bounded<C> l1_of(const CostProblem& p, const CostEntry& entry) {
  return l1_value(values_of<C>(p.pred, entry.block, entry.query),
                  values_of<C>(p.target, 0, entry.column));
}

template <class C>
RotatedPair<C> boxes_of(const RotatedCostProblem& p, const CostEntry& entry) {
  return {rotated_box_of<C>(p.pred, p.angle_unit, entry.block, entry.query),
          rotated_box_of<C>(p.target, p.angle_unit, 0, entry.column)};
}

template <class C>
Bounded<C> class_term_of(const PairwiseProblem& p, const CostEntry& entry) {
  const std::int64_t first = first_score(p, entry);
  const bool is_given = p.class_term == ClassTerm::kGiven;
  const std::int64_t which = is_given ? entry.column : class_of(p, entry.column);
  if (which < 0) return 0.0;
  const Bounded<C> score = number_at<C>({p.scores.data, p.scores.dtype}, first + which);
  switch (p.class_term) {
    case ClassTerm::kSoftmax: return softmax_cost(score);
    case ClassTerm::kSigmoid: return sigmoid_cost(score);
    case ClassTerm::kFocal:
      if (p.focal_gamma == 2) return focal_cost(odds(score), read_as<C>(p.focal_alpha), Square());
      return focal_cost(odds(score), read_as<C>(p.focal_alpha),
                        BoundedPower<C>{read_as<C>(p.focal_gamma)});
    default: return score;
  }
}

/// l1 or, of rotated boxes, the distance that takes its place.
template <class C>
Bounded<C> weighted_l1(const CostProblem& p, const CostEntry& entry) {
  return p.l1_weight != 0 ? read_as<C>(p.l1_weight) * l1_of<C>(p, entry) : Bounded<C>();
}
template <class C>
Bounded<C> weighted_l1(const RotatedCostProblem& p, const CostEntry& entry) {
  const auto [a, b] = boxes_of<C>(p, entry);
  Bounded<C> sum;
  if (p.l1_weight != 0) {
    sum = read_as<C>(p.l1_weight) *
          l1_value(Box<Bounded<C>>{a.cx, a.cy, a.w, a.h}, Box<Bounded<C>>{b.cx, b.cy, b.w, b.h});
  }
  if (p.angle_weight == 0) return sum;
  const Bounded<C> sin = sin_cos(a.angle - b.angle).sin;
  return sum + read_as<C>(p.angle_weight) * (Bounded<C>(2) * (sin * sin));
}

/// The terms that are left out are as cost_entry wants them.
template <class C, class P>
Bounded<C> entry_of(const P& p, const CostEntry& entry) {
  const Bounded<C> one(1.0), zero(0.0);
  const CostWeights<Bounded<C>> weights = {read_as<C>(p.iou_weight), one,
                                           read_as<C>(p.class_weight)};
  const auto loss = [&] {
    return bounded_loss(p.loss, boxes_of<C>(p, entry), bounded_constants<C>(p));
  };
  return cost_entry(weights, p.iou_weight != 0 ? loss() : one, weighted_l1<C>(p, entry),
                    reads_classes(p) ? class_term_of<C>(p, entry) : zero);
}

template <class C, class P>
std::vector<double> cost_bounds_in(const P& p) {
  std::vector<double> bounds(static_cast<std::size_t>(cost_entries(p)));
  for_each_entry(p, [&](const CostEntry& entry) {
    bounds[static_cast<std::size_t>(entry.at(p))] = stored(entry_of<C>(p, entry), DType::kF32);
  });
  return bounds;
}

}  // namespace

template <class P>
std::vector<double> cost_bounds(const P& p) {
  return compute_dtype(p) == DType::kF64 ? cost_bounds_in<double>(p) : cost_bounds_in<float>(p);
}

template std::vector<double> cost_bounds(const CostProblem&);
template std::vector<double> cost_bounds(const RotatedCostProblem&);

}  // namespace boxloss::conformance
