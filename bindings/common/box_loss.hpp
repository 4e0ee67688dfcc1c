// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pair_loss.hpp"

namespace boxloss::binding {

/// The losses of boxes along the axes.
struct BoxLoss : PairLoss<BoxLoss> {
  static constexpr char kFunction[] = "box_loss", kOperator[] = "boxloss::_box_loss_forward";
  static constexpr std::array kOutputs = {"loss", "scale"};
  BOXLOSS_ARGUMENTS_IN(PairArguments, BOXLOSS_BOX_LOSS_PARAMETERS);
};

struct BoxLossBackward : PairGradient<BoxLoss> {
  static constexpr char kOperator[] = "boxloss::_box_loss_backward";
  BOXLOSS_GRADIENT_ARGUMENTS(BOXLOSS_PAIR_GRADIENT_PARAMETERS, BoxLoss);
};

/// The same, with the L1 distance and the IoU of each pair.
struct BoxLosses : PairLoss<BoxLosses> {
  static constexpr char kFunction[] = "box_losses", kOperator[] = "boxloss::_box_losses_forward";
  static constexpr std::array kOutputs = {"loss", "scale", "l1", "iou"};
  static constexpr bool kHasExtras = true;
  BOXLOSS_ARGUMENTS_IN(PairArguments, BOXLOSS_BOX_LOSS_PARAMETERS);
};

struct BoxLossesBackward : PairGradient<BoxLosses> {
  static constexpr char kOperator[] = "boxloss::_box_losses_backward";
  BOXLOSS_GRADIENT_ARGUMENTS(BOXLOSS_PAIRS_GRADIENT_PARAMETERS, BoxLosses);
};

/// The losses of rotated boxes.
struct RotatedBoxLoss : PairLoss<RotatedBoxLoss> {
  static constexpr char kFunction[] = "rotated_box_loss",
                        kOperator[] = "boxloss::_rotated_box_loss_forward";
  static constexpr std::array kOutputs = {"loss", "scale"};
  static constexpr int kNumbers = 5;
  BOXLOSS_ARGUMENTS_IN(PairArguments, BOXLOSS_ROTATED_BOX_LOSS_PARAMETERS);
};

struct RotatedBoxLossBackward : PairGradient<RotatedBoxLoss> {
  static constexpr char kOperator[] = "boxloss::_rotated_box_loss_backward";
  BOXLOSS_GRADIENT_ARGUMENTS(BOXLOSS_PAIR_GRADIENT_PARAMETERS, RotatedBoxLoss);
};

}  // namespace boxloss::binding
