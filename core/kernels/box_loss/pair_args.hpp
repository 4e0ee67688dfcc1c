// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/rotated_box_loss.hpp>
#include <cstdint>

#include "../../dtypes/packs.hpp"
#include "../../losses/formulas.hpp"
#include "../../losses/l1.hpp"
#include "../../losses/rotated/formulas.hpp"
#include "../../pairings/indexed.hpp"

/// Inputs and outputs of one pair, for every kind of loop.
namespace boxloss {

/// The formula that is selected at run time.
inline AnyFormula any_formula(const LossProblem& p) { return {p.loss}; }
inline AnyRotatedFormula any_formula(const RotatedLossProblem& p) {
  return {{p.loss}, p.angle_unit};
}

/// Inputs of both passes, for formula F and compute type C.
template <class F, class C>
struct PairArgs {
  Elements<Any> weight;  ///< null data: none
  Constants<C> constants;
  F formula;
  std::int64_t images, slots;  ///< of a grid; pairs by index use IndexedPairs::sets, of_set
};

template <class F, class C>
struct ForwardArgs : PairArgs<F, C> {
  C* losses;                 ///< null: the losses are reduced
  C* l1;                     ///< null: not wanted, or reduced
  C* iou;                    ///< null: not wanted
  bool wants_l1, wants_iou;  ///< AMD's compiler cannot hide a comparison with null; see
                             ///< optimization_barrier.hpp
};

/// An incoming gradient; null data: none.
template <class C>
struct Incoming {
  const C* data;
  std::int64_t image_stride, slot_stride;

  BOXLOSS_HOST_DEVICE C at(std::int64_t b, std::int64_t j) const {
    return data[b * image_stride + j * slot_stride];
  }
};

template <class F, class P, class T, class C>
struct BackwardArgs : PairArgs<F, C> {
  Incoming<C> grad_loss;
  const C* scale;
  BoxOutputs<P> d_pred;    // each with null data where
  BoxOutputs<T> d_target;  // it is not wanted
  Outputs<Any> d_weight;
  Incoming<C> grad_l1;
  bool comes_from_loss, comes_from_l1;
  bool keeps_pred_strides, keeps_target_strides;
};

/// A partial sum, of a thread, a block or a whole set: of the loss alone, or of the loss and l1.
template <int kSums>
struct Partial {
  double sums[kSums];
  unsigned long long count;  ///< of the pairs that count

  BOXLOSS_HOST_DEVICE Partial& operator+=(const Partial& other) {
    BOXLOSS_UNROLL
    for (int i = 0; i < kSums; ++i) sums[i] += other.sums[i];
    count += other.count;
    return *this;
  }
};

using LossPartial = Partial<1>;
using LossesPartial = Partial<2>;

/// The outputs of a reduced loss and what it is divided by; one of each for each set.
template <class C>
struct ReducedLoss {
  C* loss;
  C* scale;
  Elements<Any> normalizer;  ///< null data: the number of pairs
  bool is_mean;
  std::int64_t normalizer_stride;
  C* l1;  ///< null: not wanted

  template <int kSums>
  BOXLOSS_HOST_DEVICE void write(const Partial<kSums>& total, std::int64_t set = 0) const {
    double divisor = 1;  // also if there are no valid pairs
    if (is_mean && total.count > 0) {
      divisor = normalizer.data != nullptr
                    ? normalizer.template get<double>(set * normalizer_stride)
                    : static_cast<double>(total.count);
    }
    scale[set] = static_cast<C>(1 / divisor);
    loss[set] = static_cast<C>(total.sums[0] / divisor);
    if constexpr (kSums == 2) {
      if (l1 != nullptr) l1[set] = static_cast<C>(total.sums[1] / divisor);
    }
  }
};

template <class C, class F>
PairArgs<F, C> pair_args(const F& formula, const PairProblem& p) {
  return {
      {p.weight.data, p.weight.dtype}, constants_of<C>(p), formula, p.pred.images, p.pred.slots};
}

template <class C, class F>
ForwardArgs<F, C> forward_args(const F& formula, const PairProblem& p, const LossOutputs& outputs) {
  const bool is_reduced = p.reduction != Reduction::kNone;
  return {pair_args<C>(formula, p),
          is_reduced ? nullptr : static_cast<C*>(outputs.loss),
          is_reduced ? nullptr : static_cast<C*>(outputs.l1),
          static_cast<C*>(outputs.iou),
          outputs.l1 != nullptr,
          outputs.iou != nullptr};
}

template <class C>
Incoming<C> incoming(const GradView& grad) {
  return {static_cast<const C*>(grad.data), grad.image_stride, grad.slot_stride};
}

template <class P, class T, class C, class F>
BackwardArgs<F, P, T, C> backward_args(const F& formula, const PairProblem& p,
                                       const GradOutputs& grads, const void* scale,
                                       const LossGradients& gradients) {
  return {pair_args<C>(formula, p),
          incoming<C>(grads.loss),
          static_cast<const C*>(scale),
          box_outputs<P>(gradients.pred, p.pred.dtype),
          box_outputs<T>(gradients.target, p.target.dtype),
          {gradients.weight, p.weight.dtype},
          incoming<C>(grads.l1),
          grads.loss.data != nullptr,
          grads.l1.data != nullptr,
          gradients.keeps_pred_strides,
          gradients.keeps_target_strides};
}

template <class C>
ReducedLoss<C> reduced_loss(const PairProblem& p, const LossOutputs& outputs) {
  return {static_cast<C*>(outputs.loss),
          static_cast<C*>(outputs.scale),
          {p.normalizer.data, p.normalizer.dtype},
          p.reduction == Reduction::kMean,
          p.normalizer_stride,
          static_cast<C*>(outputs.l1)};
}

/// The loss of boxes as they lie in memory. Rotated ones have one format.
template <class F, class C, class B>
BOXLOSS_HOST_DEVICE C loss_of(const PairArgs<F, C>& a, const B& pred, BoxFormat pred_format,
                              const B& target, BoxFormat target_format) {
  if constexpr (kIsRotated<F>) {
    return a.formula.loss(pred, target, a.constants);
  } else {
    return a.formula.loss(to_corners(pred, pred_format), to_corners(target, target_format),
                          a.constants);
  }
}

template <class F, class C, class B>
BOXLOSS_HOST_DEVICE C weighted_loss(const PairArgs<F, C>& a, const B& pred, BoxFormat pred_format,
                                    const B& target, BoxFormat target_format, std::int64_t row) {
  const C loss = loss_of(a, pred, pred_format, target, target_format);
  return a.weight.data == nullptr ? loss : loss * a.weight.template get<C>(row);
}

/// Forward's outputs for a pair; zeros if it is not valid.
template <class C>
struct PairLosses {
  C loss = 0, l1 = 0, iou = 0;
};

/// Rare outputs are marked unlikely, so that their code lies outside the loss's path.
template <class F, class C, class B>
BOXLOSS_HOST_DEVICE PairLosses<C> pair_losses(const ForwardArgs<F, C>& a, const B& pred,
                                              BoxFormat pred_format, const B& target,
                                              BoxFormat target_format, std::int64_t row) {
  PairLosses<C> all;
  all.loss = weighted_loss(a, pred, pred_format, target, target_format, row);
  if constexpr (!kIsRotated<F>) {
    if (__builtin_expect(optimization_barrier(a.wants_l1), 0)) {
      all.l1 = l1_distance(pred, target);
      if (a.weight.data != nullptr) all.l1 *= a.weight.template get<C>(row);
    }
  }
  if (__builtin_expect(optimization_barrier(a.wants_iou), 0)) {
    if constexpr (kIsRotated<F>) {
      all.iou = a.formula.iou(pred, target, a.constants);
    } else {
      all.iou = iou_of(
          overlap(to_corners(pred, pred_format), to_corners(target, target_format), a.constants));
    }
  }
  return all;
}

template <class F, class C>
BOXLOSS_HOST_DEVICE bool writes_rows(const ForwardArgs<F, C>& a) {
  return a.losses != nullptr || a.iou != nullptr;
}

/// Writes the outputs that are requested and not reduced.
template <class F, class C>
BOXLOSS_HOST_DEVICE void set_row_losses(const ForwardArgs<F, C>& a, std::int64_t row,
                                        const PairLosses<C>& all) {
  if (a.losses != nullptr) a.losses[row] = all.loss;
  if (__builtin_expect(a.l1 != nullptr, 0)) a.l1[row] = all.l1;
  if (__builtin_expect(a.iou != nullptr, 0)) a.iou[row] = all.iou;
}

template <class C>
BOXLOSS_HOST_DEVICE LossesPartial partial_of(const PairLosses<C>& all, bool counts) {
  return {{static_cast<double>(all.loss), static_cast<double>(all.l1)}, counts ? 1ull : 0ull};
}

/// One pair's gradients, in the boxes' own formats; zero until assigned.
template <class B>
struct Gradients {
  B pred{}, target{};
  typename B::Value weight = 0;
};

template <class F, class C, class B>
BOXLOSS_HOST_DEVICE Gradients<B> weighted_gradients(const PairArgs<F, C>& a, C by_loss,
                                                    const B& pred, BoxFormat pred_format,
                                                    const B& target, BoxFormat target_format,
                                                    std::int64_t row) {
  // Read behind the derivatives: AMD's compiler would keep it in registers all along.
  const auto by_pair = [&] {
    return a.weight.data == nullptr ? by_loss : by_loss * a.weight.template get<C>(row);
  };
  if constexpr (kIsRotated<F>) {
    const RotatedPairGradient<C> d = a.formula.derivatives(pred, target, a.constants);
    const C by = by_pair();
    return {by * d.pred, by * d.target, by_loss * d.loss};
  } else {
    const PairGradient<C> d = gradient(a.formula, to_corners(pred, pred_format),
                                       to_corners(target, target_format), a.constants);
    const C by = by_pair();
    return {from_corners_gradient(by * d.pred, pred_format),
            from_corners_gradient(by * d.target, target_format), by_loss * d.loss};
  }
}

/// The gradients of pair (b, j) through both outputs, if they have incoming gradients.
template <class F, class P, class T, class C, class B>
BOXLOSS_HOST_DEVICE Gradients<B> pair_gradients(const BackwardArgs<F, P, T, C>& a, C scale,
                                                std::int64_t b, std::int64_t j, const B& pred,
                                                BoxFormat pred_format, const B& target,
                                                BoxFormat target_format, std::int64_t row) {
  Gradients<B> d;
  if (__builtin_expect(optimization_barrier(a.comes_from_loss), 1)) {
    d = weighted_gradients(a, scale * a.grad_loss.at(b, j), pred, pred_format, target,
                           target_format, row);
  }
  if constexpr (!kIsRotated<F>) {
    if (__builtin_expect(optimization_barrier(a.comes_from_l1), 0)) {
      const C by_l1 = scale * a.grad_l1.at(b, j);
      const C by_pair = a.weight.data == nullptr ? by_l1 : by_l1 * a.weight.template get<C>(row);
      const B by_values = by_pair * l1_signs(pred, target);
      d.pred = d.pred + by_values;
      d.target = d.target + C(-1) * by_values;
      d.weight += by_l1 * l1_distance(pred, target);
    }
  }
  return d;
}

}  // namespace boxloss
