// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu/reference/pair_loss.hpp"
#include "losses/formulas.hpp"
#include "losses/l1.hpp"

/// The reference: one pair after the other, in double, with its own reading of the pairings. It is
/// slow; every other implementation is compared with it.
namespace boxloss::reference {
namespace {

template <class C>
Box<C> raw_box(const BoxView& view, std::int64_t image, std::int64_t slot) {
  const Numbers<C, 4> raw = raw_values<C, 4>(view, image, slot);
  return {raw[0], raw[1], raw[2], raw[3]};
}

template <class C>
Box<double> widened(const Box<C>& b) {
  return {b.x1, b.y1, b.x2, b.y2};
}

/// The two boxes of a pair: as corners and, for l1, as given.
struct PairBoxes {
  Box<double> pred, target, raw_pred, raw_target;

  /// Corners are rounded to the compute dtype C, as every implementation rounds them.
  template <class C>
  static PairBoxes of(const LossProblem& p, const Pair& pair) {
    const Box<C> pred = raw_box<C>(p.pred, pair.pred_image, pair.pred_slot);
    const Box<C> target = raw_box<C>(p.target, pair.target_image, pair.target_slot);
    return {widened(to_corners(pred, p.pred.format)), widened(to_corners(target, p.target.format)),
            widened(pred), widened(target)};
  }
};

double loss_of(const LossProblem& p, const PairBoxes& boxes, const Constants<double>& constants) {
  return with_formula(
      p.loss, [&](auto formula) { return formula.loss(boxes.pred, boxes.target, constants); });
}

double iou_of_pair(const PairBoxes& boxes, const Constants<double>& constants) {
  return iou_of(overlap(boxes.pred, boxes.target, constants));
}

Numbers<double, 4> numbers_of(const Box<double>& b) { return {b.x1, b.y1, b.x2, b.y2}; }

PairDerivatives<4> gradients_of(const LossProblem& p, const PairBoxes& boxes,
                                const Constants<double>& constants, double by) {
  const PairGradient<double> d = with_formula(
      p.loss, [&](auto formula) { return gradient(formula, boxes.pred, boxes.target, constants); });
  return {d.loss,
          {numbers_of(from_corners_gradient(by * d.pred, p.pred.format)),
           numbers_of(from_corners_gradient(by * d.target, p.target.format))}};
}

double l1_of(const PairBoxes& boxes) { return l1_distance(boxes.raw_pred, boxes.raw_target); }

PairNumbers<4> l1_gradients_of(const PairBoxes& boxes, double by) {
  const Box<double> signs = l1_signs(boxes.raw_pred, boxes.raw_target);
  return {numbers_of(by * signs), numbers_of(-by * signs)};
}

}  // namespace

template <>
struct BoxesOf<LossProblem> {
  using Type = PairBoxes;
};

template void Operations::forward(const LossProblem&, const LossOutputs&, const Execution&);
template void Operations::backward(const LossProblem&, const GradOutputs&, const void*,
                                   const LossGradients&, const Execution&);

}  // namespace boxloss::reference
