// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "formula_bounds.hpp"

#include "losses/formulas.hpp"

namespace boxloss::conformance {
namespace {

template <class Enum, class Boxes, class Constants>
auto bounded(Enum loss, const Boxes& boxes, const Constants& c) {
  auto result = with_formula(loss, [&](auto formula) {
    return computed(boxes, [&] { return formula.loss(boxes.pred, boxes.target, c); });
  });
  result.error += oracle_error(loss, boxes);
  return result;
}

}  // namespace

template <class C>
Bounded<C> bounded_loss(Loss loss, const PairBoxes<C>& boxes, const Constants<Bounded<C>>& c) {
  return bounded(loss, boxes, c);
}
template <class C>
Bounded<C> bounded_loss(RotatedLoss loss, const RotatedPair<C>& boxes,
                        const Constants<Bounded<C>>& c) {
  return bounded(loss, boxes, c);
}

using F = Bounded<float>;
using D = Bounded<double>;
template F bounded_loss(Loss, const PairBoxes<float>&, const Constants<F>&);
template D bounded_loss(Loss, const PairBoxes<double>&, const Constants<D>&);
template F bounded_loss(RotatedLoss, const RotatedPair<float>&, const Constants<F>&);
template D bounded_loss(RotatedLoss, const RotatedPair<double>&, const Constants<D>&);

}  // namespace boxloss::conformance
