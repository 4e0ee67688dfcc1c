// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/rotated_loss.hpp>
#include <type_traits>

#include "../../math/box.hpp"
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

/// A formula that is selected at run time, of boxes whose angles are in the given unit.
struct AnyRotatedFormula {
  RotatedLoss which;
  AngleUnit unit;

  template <class T>
  BOXLOSS_DEVICE_INLINE T loss(const RotatedBox<T>& p, const RotatedBox<T>& t,
                               const Constants<T>& c) const {
    return with_formula(loss_here(), [&](auto formula) {
      return formula.loss(in_radians(p, unit_here()), in_radians(t, unit_here()), c);
    });
  }

  template <class T>
  BOXLOSS_DEVICE_INLINE RotatedPairGradient<T> derivatives(const RotatedBox<T>& p,
                                                           const RotatedBox<T>& t,
                                                           const Constants<T>& c) const {
    RotatedPairGradient<T> d = with_formula(loss_here(), [&](auto formula) {
      return formula.derivatives(in_radians(p, unit_here()), in_radians(t, unit_here()), c);
    });
    d.pred = from_radians_gradient(d.pred, unit_here());
    d.target = from_radians_gradient(d.target, unit_here());
    return d;
  }

  template <class T>
  BOXLOSS_HOST_DEVICE T iou(const RotatedBox<T>& p, const RotatedBox<T>& t,
                            const Constants<T>& c) const {
    return rotated::iou_of(
        rotated::overlap(in_radians(p, unit_here()), in_radians(t, unit_here()), c));
  }

 private:
  BOXLOSS_HOST_DEVICE RotatedLoss loss_here() const {
    return static_cast<RotatedLoss>(optimization_barrier(static_cast<int>(which)));
  }
  BOXLOSS_HOST_DEVICE AngleUnit unit_here() const {
    return static_cast<AngleUnit>(optimization_barrier(static_cast<int>(unit)));
  }
};

template <class F>
constexpr bool kIsRotated = std::is_same_v<F, AnyRotatedFormula>;

/// The boxes that a formula is of.
template <class F, class T>
using BoxOf = std::conditional_t<kIsRotated<F>, RotatedBox<T>, Box<T>>;

}  // namespace boxloss
