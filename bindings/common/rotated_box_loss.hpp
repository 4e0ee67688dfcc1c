// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/rotated_box_loss.hpp>

#include "pair_loss.hpp"

namespace boxloss::binding {

/// The losses of rotated boxes.
struct RotatedBoxLoss : PairLoss<RotatedBoxLoss, RotatedLossProblem> {
  static constexpr char kFunction[] = "rotated_box_loss";
  static constexpr std::array kOutputs = {"loss", "scale"};
  BOXLOSS_ARGUMENTS(BOXLOSS_ROTATED_BOX_LOSS_PARAMETERS);

  template <class Args>
  static void set_own(RotatedLossProblem& p, const Args& a) {
    p.loss = rotated_loss_named(a.loss);
    p.angle_unit = parse_angle_unit(a.angle_unit);
  }
};

}  // namespace boxloss::binding
