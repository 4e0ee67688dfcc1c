// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/loss.hpp>

#include "losses/giou.hpp"

/// A formula is a struct with two static functions for one pair of corner boxes, `loss` and
/// `gradient`; the latter gives the loss with its derivatives by all eight coordinates.
namespace boxloss {

/// Gives `use` the formula of a loss, which is set: core refuses the others before.
template <class Use>
auto with_formula(Loss loss, const Use& use) {
  switch (loss) {
#define BOXLOSS_CASE(Formula, word) \
  case Loss::k##Formula: return use(Formula());
    BOXLOSS_FOR_EACH_LOSS(BOXLOSS_CASE)
#undef BOXLOSS_CASE
    case Loss::kUnset: break;
  }
  __builtin_unreachable();
}

}  // namespace boxloss
