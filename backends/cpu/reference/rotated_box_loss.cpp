// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu/reference/pair_loss.hpp"
#include "cpu/reference/rotated_pair.hpp"

/// The reference for rotated boxes. Gradients are core's formulas'.
namespace boxloss::reference {
namespace {

struct BoxesOfPair : RotatedPair {
  template <class C>
  static BoxesOfPair of(const RotatedLossProblem& p, const Pair& pair) {
    return {{box_in_radians<C>(p.pred, pair.pred_image, pair.pred_slot, p.angle_unit),
             box_in_radians<C>(p.target, pair.target_image, pair.target_slot, p.angle_unit)}};
  }
};

Numbers<double, 5> numbers_of(const RotatedBox<double>& b) {
  return {b.cx, b.cy, b.w, b.h, b.angle};
}

double loss_of(const RotatedLossProblem& p, const RotatedPair& boxes,
               const Constants<double>& constants) {
  return rotated_loss(p.loss, boxes, constants);
}

double iou_of_pair(const RotatedPair& boxes, const Constants<double>& constants) {
  if (!are_polygons(boxes)) {
    return rotated::iou_of(rotated::overlap<double>(boxes.pred, boxes.target, constants));
  }
  const auto [inter, uni] = areas_of(boxes, constants);
  return static_cast<double>(inter / uni);
}

PairDerivatives<5> gradients_of(const RotatedLossProblem& p, const RotatedPair& boxes,
                                const Constants<double>& constants, double by) {
  const RotatedPairGradient<double> d = with_formula(p.loss, [&](auto formula) {
    return formula.derivatives(boxes.pred, boxes.target, constants);
  });
  return {d.loss,
          {numbers_of(from_radians_gradient(by * d.pred, p.angle_unit)),
           numbers_of(from_radians_gradient(by * d.target, p.angle_unit))}};
}

/// Core refuses an l1 of rotated boxes.
double l1_of(const RotatedPair&) { return 0; }
PairNumbers<5> l1_gradients_of(const RotatedPair&, double) { return {}; }

}  // namespace

template <>
struct BoxesOf<RotatedLossProblem> {
  using Type = BoxesOfPair;
};

template void Operations::forward(const RotatedLossProblem&, const LossOutputs&, const Execution&);
template void Operations::backward(const RotatedLossProblem&, const GradOutputs&, const void*,
                                   const LossGradients&, const Execution&);

}  // namespace boxloss::reference
