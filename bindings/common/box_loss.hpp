// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pair_loss.hpp"

namespace boxloss::binding {

/// The losses of boxes along the axes.
struct BoxLoss : PairLoss<BoxLoss, LossProblem> {
  static constexpr char kFunction[] = "box_loss";
  static constexpr std::array kOutputs = {"loss", "scale", "l1", "iou"};
  BOXLOSS_ARGUMENTS(BOXLOSS_BOX_LOSS_PARAMETERS);

  template <class Args>
  static void set_own(LossProblem& p, const Args& a) {
    p.loss = loss_named(a.loss);
    p.pred.format = parse_format("pred_format", a.pred_format);
    p.target.format = parse_format("target_format", a.target_format);
  }

  /// loss, scale, l1, iou; without extras the last two have no shape.
  template <class Args>
  static std::array<Output<SizeOf<Args>>, 4> outputs(const Args& a, const LossProblem& p,
                                                     bool extras) {
    const auto [loss, scale] = PairLoss::outputs(a, p);
    if (!extras) return {{loss, scale, {loss.dtype, {}}, {loss.dtype, {}}}};
    return {{loss, scale, loss, {loss.dtype, shape_of_rows(a)}}};
  }
};

}  // namespace boxloss::binding
