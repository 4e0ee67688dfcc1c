// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

/// What the operation `rotated_box_loss` alone refuses. Its losses, and that degrees turn against
/// radians, the conformance suite compares with other algorithms.
namespace boxloss {
namespace {

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

}  // namespace
}  // namespace boxloss
