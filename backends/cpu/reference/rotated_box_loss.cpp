// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "cpu/operations.hpp"
#include "cpu/reference/pair_loss.hpp"
#include "cpu/reference/polygons.hpp"
#include "losses/rotated/formulas.hpp"

/// The reference for rotated boxes, in double. Losses by area are computed from polygons, the
/// others, and all gradients, by core's formulas, which the tests of core compare with others.
namespace boxloss {
namespace reference {
namespace {

template <class C>
RotatedBox<double> box_in_radians(const BoxView& view, std::int64_t image, std::int64_t slot,
                                  AngleUnit unit) {
  const Numbers<C, 5> raw = raw_values<C, 5>(view, image, slot);
  const RotatedBox<C> b = in_radians(RotatedBox<C>{raw[0], raw[1], raw[2], raw[3], raw[4]}, unit);
  return {b.cx, b.cy, b.w, b.h, b.angle};
}

struct RotatedPair {
  RotatedBox<double> pred, target;

  /// In radians, which are rounded to the compute dtype C, as every implementation rounds them.
  template <class C>
  static RotatedPair of(const RotatedLossProblem& p, const Pair& pair) {
    return {box_in_radians<C>(p.pred, pair.pred_image, pair.pred_slot, p.angle_unit),
            box_in_radians<C>(p.target, pair.target_image, pair.target_slot, p.angle_unit)};
  }
};

Numbers<double, 5> numbers_of(const RotatedBox<double>& b) {
  return {b.cx, b.cy, b.w, b.h, b.angle};
}

/// Of other boxes, with NaN or without an area, only the formula says what they have.
bool is_polygon(const RotatedBox<double>& b) {
  bool is_finite = true;
  for (const double number : numbers_of(b)) is_finite = is_finite && std::isfinite(number);
  return is_finite && b.w > 0 && b.h > 0;
}

struct Areas {
  double inter, uni;  ///< the union with eps
};

Areas areas_of(const RotatedPair& boxes, const Constants<double>& c) {
  const double inter = intersection_of(boxes.pred, boxes.target);
  const double all = area(boxes.pred) + area(boxes.target) - inter;
  return {inter, std::max(all + c.added, c.floor)};
}

double loss_of(const RotatedLossProblem& p, const RotatedPair& boxes,
               const Constants<double>& constants) {
  if (!kLossesByArea.contains(p.loss) || !is_polygon(boxes.pred) || !is_polygon(boxes.target)) {
    return with_formula(
        p.loss, [&](auto formula) { return formula.loss(boxes.pred, boxes.target, constants); });
  }
  const auto [inter, uni] = areas_of(boxes, constants);
  if (p.loss == RotatedLoss::kIou) return 1 - inter / uni;
  const double hull =
      std::max(hull_of(boxes.pred, boxes.target) + constants.added, constants.floor);
  return 1 - inter / uni + (hull - uni) / hull;
}

double iou_of_pair(const RotatedPair& boxes, const Constants<double>& constants) {
  if (is_polygon(boxes.pred) && is_polygon(boxes.target)) {
    const auto [inter, uni] = areas_of(boxes, constants);
    return inter / uni;
  }
  return rotated::iou_of(rotated::overlap<double>(boxes.pred, boxes.target, constants));
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
}  // namespace reference

void reference::forward(const RotatedLossProblem& p, const LossOutputs& outputs, const Execution&) {
  run_forward<RotatedPair>(p, outputs);
}

void reference::backward(const RotatedLossProblem& p, const GradOutputs& grads, const void* scale,
                         const LossGradients& gradients, const Execution&) {
  run_backward<RotatedPair>(p, grads, scale, gradients);
}

}  // namespace boxloss
