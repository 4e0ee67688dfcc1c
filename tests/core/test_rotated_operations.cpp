// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>

#include "refusals.hpp"

/// What only losses and costs of rotated boxes refuse, and costs worked out by hand. The losses,
/// and that degrees turn against radians, the conformance suite compares with other algorithms.
namespace boxloss {
namespace {

using Catch::Matchers::WithinAbs;

/// A square of side 2 and the same turned by 45 degrees: right, until a test spoils it.
struct Rotated : Prepared {
  double pred[5] = {3, 4, 2, 2, 0}, target[5] = {3, 4, 2, 2, 45};
  double loss = 99, scale = 99, other = 99;
  RotatedLossProblem p;
  LossOutputs outputs{&loss, &scale};

  Rotated() {
    p.loss = RotatedLoss::kIou;
    p.angle_unit = AngleUnit::kDegrees;
    p.pred.data = pred;
    p.target.data = target;
    p.pred.dtype = p.target.dtype = DType::kF64;
    p.pred.slots = p.target.slots = 1;
    p.eps = 0;
  }
  void set_loss(RotatedLoss its, const LossParameters& parameters = {}) {
    p.loss = its;
    p.parameters = parameters;
  }
  void run() { loss_forward(implementation, p, outputs, execution); }
  bool is_untouched() const { return loss == 99 && scale == 99; }
};

// clang-format off
TEST_CASE("what only rotated boxes refuse") {
  require_refused<InvalidArgument>(Refusals<Rotated>{
      {[](Rotated& r) { r.p.loss = {}; }, "loss is not set; it must be one of 'iou', 'giou', 'probiou', 'kld', 'gwd', 'kfiou'"},
      {[](Rotated& r) { r.p.angle_unit = kNoUnit; }, "angle_unit is 2; it must be one of radians, degrees"},
      {[](Rotated& r) { r.set_loss(RotatedLoss::kKld, {2, {0.5, 0}}); }, "tau is 0.5; it must be from 1 to 1e6"},
      {[](Rotated& r) { r.set_loss(RotatedLoss::kProbiou, {1, {-1}}); }, "floor is -1; it must be from 0 to 1e6"},
      {[](Rotated& r) { r.set_loss(RotatedLoss::kGwd); r.outputs.iou = &r.other; }, "the output iou needs one of the losses 'iou', 'giou', but loss is 'gwd'"},
      {[](Rotated& r) { r.p.pred.slots = 2; r.p.pred.slot_stride = 4; }, "pred" + kFour},
      {[](Rotated& r) { r.p.target.slots = 2; r.p.target.slot_stride = 4; }, "target" + kFour},
      {[](Rotated& r) { r.p.target.slots = 2; r.p.target.slot_stride = 5; }, "target has shape (1, 2, 5), pred has (1, 1, 5); they must be equal"},
  });
  require_refused<Unsupported>(Refusals<Rotated>{
      {[](Rotated& r) { r.outputs.l1 = &r.other; }, "cpu/native does not serve the output l1"},
      {[](Rotated& r) { r.implementation.rotated_box_loss = {}; }, "cpu/native does not serve rotated_box_loss"},
  });
}
// clang-format on

// --- The matcher's cost

/// A square of side 2, with itself turned by 45 degrees, and turned by 90 and moved by 1: right,
/// until a test spoils it.
struct RotatedCost : Prepared {
  double pred[5] = {3, 4, 2, 2, 0}, target[10] = {3, 4, 2, 2, 45, 4, 4, 2, 2, 90};
  std::int32_t offsets[2] = {0, 2};
  float* cost = output(0);
  RotatedCostProblem p;

  RotatedCost() {
    p.loss = RotatedLoss::kIou;
    p.angle_unit = AngleUnit::kDegrees;
    p.pred.data = pred;
    p.target.data = target;
    p.pred.dtype = p.target.dtype = DType::kF64;
    p.pred.images = p.target.images = p.pred.slots = 1;
    p.target.slots = 2;
    p.offsets = {offsets, DType::kI32};
    p.angle_weight = 3;
  }
  void run() { matching_cost(implementation, p, cost, execution); }
};

TEST_CASE("rotated boxes cost their loss, their distance and twice their angle's cosine") {
  const double octagon = 8 * (std::sqrt(2.0) - 1);
  const auto require_costs = [](RotatedCost& c, double turned, double moved) {
    for (const char* const name : {"cpu/reference", "cpu/native"}) {
      c.implementation = implementation(name);
      c.run();
      REQUIRE_THAT(c.cost[0], WithinAbs(turned, 1e-6));
      REQUIRE_THAT(c.cost[1], WithinAbs(moved, 1e-6));
    }
  };
  RotatedCost all;
  require_costs(all, -2 * octagon / (8 - octagon) + 3, -2. / 3 + 5 + 6);
  // What is left out may be anything.
  RotatedCost by_angle;
  by_angle.p.iou_weight = by_angle.p.l1_weight = 0;
  by_angle.pred[0] = by_angle.pred[3] = kNan;
  require_costs(by_angle, 3, 6);
  RotatedCost by_l1;
  by_l1.p.iou_weight = by_l1.p.angle_weight = 0;
  by_l1.pred[4] = kNan;
  require_costs(by_l1, 0, 5);
}

// clang-format off
TEST_CASE("what only costs of rotated boxes refuse") {
  require_refused<InvalidArgument>(Refusals<RotatedCost>{
      {[](RotatedCost& c) { c.p.loss = {}; }, "loss is not set; it must be one of " + names_of(kRotatedLosses)},
      {[](RotatedCost& c) { c.p.angle_unit = kNoUnit; }, "angle_unit is 2; it must be one of radians, degrees"},
      {[](RotatedCost& c) { c.p.angle_weight = kNan; }, "angle_weight is nan; it must be finite, as a float64"},
      {[](RotatedCost& c) { c.p.pred.slots = 2; c.p.pred.slot_stride = 4; }, "pred" + kFour},
      {[](RotatedCost& c) { c.p.target.slot_stride = 4; }, "target" + kFour},
  });
  require_refused<Unsupported>(Refusals<RotatedCost>{
      {[](RotatedCost& c) { c.implementation.rotated_matching_cost.losses = {RotatedLoss::kKld}; }, "cpu/native does not serve the loss 'iou', only 'kld'"},
      {[](RotatedCost& c) { c.implementation.rotated_matching_cost = {}; }, "cpu/native does not serve rotated_matching_cost"},
  });
}
// clang-format on

}  // namespace
}  // namespace boxloss
