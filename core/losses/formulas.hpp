// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/loss.hpp>

#include "../math/optimization_barrier.hpp"
#include "alpha_iou.hpp"
#include "ciou.hpp"
#include "ciou_gated.hpp"
#include "diou.hpp"
#include "eiou.hpp"
#include "giou.hpp"
#include "inner_iou.hpp"
#include "iou.hpp"
#include "iou_log.hpp"
#include "iou_squared.hpp"
#include "mpdiou.hpp"
#include "nwd.hpp"
#include "siou.hpp"

/// A formula is a struct with two functions for one pair of corner boxes: `loss`, and `derivatives`
/// (see derivatives.hpp), which gives the loss, too.
namespace boxloss {

/// Calls `use` with the formula of a loss. The loss is set: core has refused others.
template <class Use>
BOXLOSS_HOST_DEVICE auto with_formula(Loss loss, const Use& use) {
  switch (loss) {
#define BOXLOSS_CASE(Formula, word) \
  case Loss::k##Formula: return use(Formula());
    BOXLOSS_FOR_EACH_LOSS(BOXLOSS_CASE)
#undef BOXLOSS_CASE
    case Loss::kUnset: break;
  }
  __builtin_unreachable();
}

/// A formula that is selected at run time: one kernel for all losses.
struct AnyFormula {
  static constexpr bool kUsesEnds = true;

  Loss which;

  template <class T>
  BOXLOSS_DEVICE_INLINE T loss(const Box<T>& p, const Box<T>& t, const Constants<T>& c) const {
    return with_formula(here(), [&](auto formula) { return formula.loss(p, t, c); });
  }

  template <class T>
  BOXLOSS_DEVICE_INLINE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                   const Constants<T>& c) const {
    return with_formula(here(), [&](auto formula) { return formula.derivatives(p, t, c); });
  }

 private:
  BOXLOSS_HOST_DEVICE Loss here() const {
    return static_cast<Loss>(optimization_barrier(static_cast<int>(which)));
  }
};

/// Calls `use` with the formula of GIoU, the most common loss, or with the one for all losses.
template <class Use>
void with_giou_or_any(Loss loss, const Use& use) {
  if (loss == Loss::kGiou) return use(Giou());
  use(AnyFormula{loss});
}

}  // namespace boxloss
