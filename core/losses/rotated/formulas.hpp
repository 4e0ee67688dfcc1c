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

#if defined(__CUDACC__)
#pragma nv_exec_check_disable  // `use` may be a function of the host
#endif
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

/// A formula that is chosen before: loops have it alone.
template <class Formula>
struct OneFormula {
  template <class Use>
  BOXLOSS_HOST_DEVICE auto with(const Use& use) const {
    return use(Formula());
  }
};

/// One that is selected at run time.
struct SelectedFormula {
  RotatedLoss which;

  template <class Use>
  BOXLOSS_HOST_DEVICE auto with(const Use& use) const {
    return with_formula(static_cast<RotatedLoss>(optimization_barrier(static_cast<int>(which))),
                        use);
  }
};

/// A formula of boxes whose angles are in the given unit.
template <class Choice>
struct RotatedFormula : Choice {
  AngleUnit unit;

  template <class T>
  BOXLOSS_DEVICE_INLINE T loss(const RotatedBox<T>& p, const RotatedBox<T>& t,
                               const Constants<T>& c) const {
    return this->with([&](auto formula) {
      return formula.loss(in_radians(p, unit_here()), in_radians(t, unit_here()), c);
    });
  }

  template <class T>
  BOXLOSS_DEVICE_INLINE RotatedPairGradient<T> derivatives(const RotatedBox<T>& p,
                                                           const RotatedBox<T>& t,
                                                           const Constants<T>& c) const {
    RotatedPairGradient<T> d = this->with([&](auto formula) {
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
  BOXLOSS_HOST_DEVICE AngleUnit unit_here() const {
    return static_cast<AngleUnit>(optimization_barrier(static_cast<int>(unit)));
  }
};

using AnyRotatedFormula = RotatedFormula<SelectedFormula>;

template <class F>
constexpr bool kIsRotated = false;
template <class Choice>
constexpr bool kIsRotated<RotatedFormula<Choice>> = true;

/// The boxes that a formula is of.
template <class F, class T>
using BoxOf = std::conditional_t<kIsRotated<F>, RotatedBox<T>, Box<T>>;

}  // namespace boxloss
