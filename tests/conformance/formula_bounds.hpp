// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "losses/rotated/formulas.hpp"
#include "stored.hpp"

/// Bounds of what formulas compute.
namespace boxloss::conformance {

template <class C>
struct PairBoxes {
  Box<Bounded<C>> pred, target;
};

template <class C>
struct RotatedPair {
  RotatedBox<Bounded<C>> pred, target;
};

/// How far the oracle's own computation may be from the formula's. Losses by area it computes from
/// polygons in long double, with a unit roundoff u. With all corners within R of the target's
/// centre,
///   6 u R    is the error of a corner,
///   8 u R    that of its distance from a line, and so of which side it is on,
///   7 u R    that of a crossing's distance from its edge, however unsure it is along the edge.
/// So each of four clips moves the border by 15 u R, and with the corners of both boxes it is off
/// by 72 u R. Times its length, 4 sqrt(2) R at most, and with the shoelace formula's 24 u (2 R)^2
/// the intersection is off by 510 u R^2. The hull's border is no longer than 2 pi R, each of its
/// eight corners that is missed or kept costs 8 u R^2, and so it is off by 200 u R^2. Divided by
/// the union, which is off as the intersection is, and by the hull, which both contain the larger
/// box, that is 1730 u R^2 / the larger area. Exact numbers make no oracle's error 0.
template <class C>
double oracle_error(RotatedLoss loss, const RotatedPair<C>& boxes) {
  if (!kLossesByArea.contains(loss)) return 0;
  const auto& [a, b] = boxes;
  const double larger = std::max(a.w.value * a.h.value, b.w.value * b.h.value);
  const double reach = std::hypot(a.cx.value - b.cx.value, a.cy.value - b.cy.value) +
                       std::hypot(a.w.value, a.h.value) / 2 + std::hypot(b.w.value, b.h.value) / 2;
  const double unit = std::numeric_limits<long double>::epsilon() / 2;
  const double error = 1730 * unit * reach * reach / larger;
  return std::isfinite(error) && error > 0 ? error : 0;
}

/// f of each number of two results.
template <class C, class F>
Bounded<C> combined(const Bounded<C>& a, const Bounded<C>& b, const F& f) {
  return f(a, b);
}
template <class C, class F>
RotatedBox<Bounded<C>> combined(const RotatedBox<Bounded<C>>& a, const RotatedBox<Bounded<C>>& b,
                                const F& f) {
  return {f(a.cx, b.cx), f(a.cy, b.cy), f(a.w, b.w), f(a.h, b.h), f(a.angle, b.angle)};
}
template <class C, class F>
RotatedPairGradient<Bounded<C>> combined(const RotatedPairGradient<Bounded<C>>& a,
                                         const RotatedPairGradient<Bounded<C>>& b, const F& f) {
  return {f(a.loss, b.loss), combined(a.pred, b.pred, f), combined(a.target, b.target, f)};
}

/// What a formula computes of boxes. Where rounding decides whether sides are exchanged, it is
/// computed the other way, too, as others may.
template <class C, class Compute>
auto computed(const RotatedPair<C>&, const Compute& compute) {
  exchange = {};
  const auto own = compute();
  if (!exchange.is_unsure) return own;
  exchange.takes_other = true;
  return combined(own, compute(), [](const Bounded<C>& a, const Bounded<C>& b) {
    return select(Decision{true, false}, a, b);
  });
}

/// As for rotated boxes, where there is nothing to it.
template <class C>
double oracle_error(Loss, const PairBoxes<C>&) {
  return 0;
}
template <class C, class Compute>
auto computed(const PairBoxes<C>&, const Compute& compute) {
  return compute();
}

/// What a loss may be: for float and double in formula_bounds.cpp, since formulas of these take
/// long to compile.
template <class C>
Bounded<C> bounded_loss(Loss loss, const PairBoxes<C>& boxes, const Constants<Bounded<C>>& c);
template <class C>
Bounded<C> bounded_loss(RotatedLoss loss, const RotatedPair<C>& boxes,
                        const Constants<Bounded<C>>& c);

}  // namespace boxloss::conformance
