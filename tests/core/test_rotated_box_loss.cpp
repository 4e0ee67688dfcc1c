// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>

#include "refusals.hpp"

/// The operation `rotated_box_loss`: values worked out by hand, and what it alone refuses.
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

TEST_CASE("a square and itself turned by an eighth share an octagon") {
  for (const char* name : {"cpu/reference", "cpu/native"}) {
    Rotated r;
    r.implementation = implementation(name);
    r.outputs.iou = &r.other;
    r.run();
    const double octagon = 8 * (std::sqrt(2.0) - 1);
    const double iou = octagon / (8 - octagon);
    REQUIRE_THAT(r.loss, WithinAbs(1 - iou, 1e-14));
    REQUIRE_THAT(r.other, WithinAbs(iou, 1e-14));
  }
}

TEST_CASE("degrees turn against radians, forward and backward") {
  for (const char* name : {"cpu/reference", "cpu/native"}) {
    double by_angle[2];
    for (const AngleUnit unit : {AngleUnit::kRadians, AngleUnit::kDegrees}) {
      Rotated r;
      r.implementation = implementation(name);
      r.p.angle_unit = unit;
      r.pred[2] = 5;
      r.pred[4] = unit == AngleUnit::kDegrees ? 30 : -30 * 3.14159265358979324 / 180;
      r.target[4] = 0;
      r.target[0] = 4;
      r.run();
      const double one = 1;
      double d_pred[5];
      loss_backward(r.implementation, r.p, {{&one}, {}}, &r.scale, {d_pred}, r.execution);
      by_angle[static_cast<int>(unit)] = d_pred[4];
    }
    REQUIRE(by_angle[0] != 0);
    REQUIRE_THAT(by_angle[1], WithinAbs(by_angle[0] * -3.14159265358979324 / 180, 1e-14));
  }
}

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

}  // namespace
}  // namespace boxloss
