// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/rotated_loss.hpp>

#include "../../math/optimization_barrier.hpp"
#include "giou.hpp"
#include "gwd.hpp"
#include "iou.hpp"
#include "kfiou.hpp"
#include "kld.hpp"
#include "probiou.hpp"

/// A formula of rotated boxes is a struct with two functions for one pair: `loss`, and
/// `derivatives`, which gives the loss and its derivatives by both boxes' five numbers.
namespace boxloss {

/// Calls `use` with the formula of a loss. The loss is set: core has refused others.
template <class Use>
BOXLOSS_HOST_DEVICE auto with_formula(RotatedLoss loss, const Use& use) {
  switch (loss) {
#define BOXLOSS_CASE(Formula, word) \
  case RotatedLoss::k##Formula: return use(rotated::Formula());
    BOXLOSS_FOR_EACH_ROTATED_LOSS(BOXLOSS_CASE)
#undef BOXLOSS_CASE
    case RotatedLoss::kUnset: break;
  }
  __builtin_unreachable();
}

}  // namespace boxloss
