// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dtypes/packs.hpp"
#include "losses/formulas.hpp"

/// What is read and written for one pair, whatever loop comes to it.
namespace boxloss {

/// What both passes read, for formula F and compute type C.
template <class F, class C>
struct PairArgs {
  Elements<Any> weight;  ///< null data: none
  Eps<C> eps;
  F formula;
  std::int64_t images, slots;
};

template <class F, class C>
struct ForwardArgs : PairArgs<F, C> {
  C* losses;  ///< null: the losses are reduced
};

template <class F, class P, class T, class C>
struct BackwardArgs : PairArgs<F, C> {
  const C* grad_loss;
  std::int64_t grad_image_stride, grad_slot_stride;
  const C* scale;
  BoxOutputs<P> d_pred;    // each with null data where
  BoxOutputs<T> d_target;  // it is not wanted
  Outputs<Any> d_weight;
};

/// A thread's, a block's or the whole problem's share of the reduced loss.
struct Partial {
  double sum;
  unsigned long long count;  ///< of the pairs that count

  BOXLOSS_HOST_DEVICE Partial& operator+=(const Partial& other) {
    sum += other.sum;
    count += other.count;
    return *this;
  }
};

/// Where a reduced loss goes, and what it is divided by.
template <class C>
struct ReducedLoss {
  C* loss;
  C* scale;
  Elements<Any> normalizer;  ///< null data: none
  bool divides_by_count;

  BOXLOSS_HOST_DEVICE void write(const Partial& total) const {
    double divisor = 1;
    if (normalizer.data != nullptr) {
      divisor = normalizer.template get<double>(0);
    } else if (divides_by_count) {
      divisor = total.count > 0 ? static_cast<double>(total.count) : 1;
    }
    *scale = static_cast<C>(1 / divisor);
    *loss = static_cast<C>(total.sum / divisor);
  }
};

template <class C, class F>
PairArgs<F, C> pair_args(const F& formula, const LossProblem& p) {
  return {{p.weight.data, p.weight.dtype},
          make_eps<C>(p.eps, p.eps_mode),
          formula,
          p.pred.images,
          p.pred.slots};
}

template <class C, class F>
ForwardArgs<F, C> forward_args(const F& formula, const LossProblem& p, const LossOutputs& outputs) {
  C* const loss = static_cast<C*>(outputs.loss);
  return {pair_args<C>(formula, p), p.reduction == Reduction::kNone ? loss : nullptr};
}

template <class P, class T, class C, class F>
BackwardArgs<F, P, T, C> backward_args(const F& formula, const LossProblem& p,
                                       const GradView& grad_loss, const void* scale,
                                       const LossGradients& gradients) {
  return {pair_args<C>(formula, p),
          static_cast<const C*>(grad_loss.data),
          grad_loss.image_stride,
          grad_loss.slot_stride,
          static_cast<const C*>(scale),
          box_outputs<P>(gradients.pred, p.pred.dtype),
          box_outputs<T>(gradients.target, p.target.dtype),
          {gradients.weight, p.weight.dtype}};
}

template <class C>
ReducedLoss<C> reduced_loss(const LossProblem& p, const LossOutputs& outputs) {
  return {static_cast<C*>(outputs.loss),
          static_cast<C*>(outputs.scale),
          {p.normalizer.data, p.normalizer.dtype},
          p.reduction == Reduction::kMean};
}

template <class F, class C>
BOXLOSS_HOST_DEVICE C weighted_loss(const PairArgs<F, C>& a, const Box<C>& pred,
                                    BoxFormat pred_format, const Box<C>& target,
                                    BoxFormat target_format, std::int64_t row) {
  const C loss =
      a.formula.loss(to_corners(pred, pred_format), to_corners(target, target_format), a.eps);
  return a.weight.data == nullptr ? loss : loss * a.weight.template get<C>(row);
}

/// One pair's gradients, in the boxes' own formats; all zero as long as nothing is assigned.
template <class C>
struct Gradients {
  Box<C> pred{}, target{};
  C weight = 0;
};

template <class F, class C>
BOXLOSS_HOST_DEVICE Gradients<C> weighted_gradients(const PairArgs<F, C>& a, C by_loss,
                                                    const Box<C>& pred, BoxFormat pred_format,
                                                    const Box<C>& target, BoxFormat target_format,
                                                    std::int64_t row) {
  const PairGradient<C> d =
      gradient(a.formula, to_corners(pred, pred_format), to_corners(target, target_format), a.eps);
  const C by_pair = a.weight.data == nullptr ? by_loss : by_loss * a.weight.template get<C>(row);
  return {from_corners_gradient(by_pair * d.pred, pred_format),
          from_corners_gradient(by_pair * d.target, target_format), by_loss * d.loss};
}

}  // namespace boxloss
