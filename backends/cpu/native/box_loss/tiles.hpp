// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "cpu/native/box_loss/pairs.hpp"
#include "cpu/native/box_reader.hpp"
#include "cpu/native/rows.hpp"
#include "kernels/box_loss/pair_args.hpp"

/// The computation of a tile of pairs, in either pass.
namespace boxloss::native {

/// Adds tiles' losses to `sum`, and writes them where they are not reduced.
template <class C, class P>
class TileForward {
 public:
  using Problem = P;
  static constexpr int kPairs = kTilePairs;

  TileForward(const Problem& p, const LossOutputs& outputs)
      : loss_(p.loss),
        constants_(constants_of<C>(p)),
        pred_(reader_of<C>(p, p.pred)),
        target_(reader_of<C>(p, p.target)),
        weight_(p.weight.data, p.weight.dtype),
        losses_(p.reduction == Reduction::kNone ? outputs.loss : nullptr, kDTypeOf<C>),
        l1_(p.reduction == Reduction::kNone ? outputs.l1 : nullptr, kDTypeOf<C>),
        ious_(outputs.iou, kDTypeOf<C>),
        wants_l1_(outputs.l1 != nullptr) {}

  void operator()(const Pairs& pairs) {
    const VectorCode<C>& code = vector_code<C>();
    const int n = pairs.count;
    const C* const pred = pred_.read(pairs.pred, n);
    const C* const target = target_.read(pairs.target, n);
    const C* const weight = weight_.is_given() ? weight_.read(pairs.row, n) : nullptr;
    const auto weighted_sum = [&](C* values) {
      if (weight != nullptr) code.multiply(weight, n, values);
      return code.sum(values, n);
    };
    sum.count += n;
    if (wants_l1_) {
      C* const l1 = l1_.rows(pairs.row, n);
      code.l1(pred, target, n, l1);
      sum.sums[1] += weighted_sum(l1);
      l1_.put(pairs.row, n);
    }
    const C* const p = pred_.for_formula(pred, n);
    const C* const t = target_.for_formula(target, n);
    C* const losses = losses_.rows(pairs.row, n);
    box_code<C, Problem>().losses(loss_, p, t, constants_, n, losses);
    sum.sums[0] += weighted_sum(losses);
    losses_.put(pairs.row, n);
    if (ious_.is_wanted()) {
      box_code<C, Problem>().ious(p, t, constants_, n, ious_.rows(pairs.row, n));
      ious_.put(pairs.row, n);
    }
  }

  /// Up to kPairs, until the next call.
  const C* read_targets(const Places& elements, int count) { return target_.read(elements, count); }

  /// For invalid pairs.
  void zero_rows(const RowRange& rows) const {
    losses_.zero(rows);
    l1_.zero(rows);
    ious_.zero(rows);
  }
  void zero_pred_rows(const RowRange&) const {}

  LossesPartial sum{};

 private:
  decltype(Problem::loss) loss_;
  Constants<C> constants_;
  ReaderOf<C, Problem> pred_, target_;
  RowReader<C, 1> weight_;
  RowWriter<C, 1> losses_, l1_, ious_;
  bool wants_l1_;  ///< of four numbers: core refuses the l1 of others
};

/// The factor of the gradient of each pair's loss, or l1: the incoming gradient, scaled.
template <class C>
class Factors {
 public:
  Factors(const PairProblem& p, const GradView& grad, const void* scale)
      : incoming_(incoming<C>(grad)),
        scale_(static_cast<const C*>(scale)),
        is_indexed_(is_indexed(p)),
        is_one_(loss_sets(p) == 1 && grad.image_stride == 0 && grad.slot_stride == 0) {
    if (is_indexed_) {
      rows_of_image_ = p.pairing.pairs;
    } else if (p.pairing.kind != Pairing::Kind::kOffsets) {  // with them, rows are one list
      rows_of_image_ = p.pred.slots;
    }
  }

  bool are_given() const { return incoming_.data != nullptr; }

  const C* of(const Pairs& pairs) {
    C* const factors = rows_.values;
    if (is_one_) {
      std::fill_n(factors, whole_blocks(pairs.count), *scale_ * *incoming_.data);
      return factors;
    }
    for (int k = 0; k < pairs.count; ++k) {
      const std::int64_t image = pairs.image[k];
      const std::int64_t slot = pairs.row[k] - image * rows_of_image_;
      factors[k] = scale_[is_indexed_ ? image : 0] * incoming_.at(image, slot);
    }
    end_rows(factors, 1, pairs.count);
    return factors;
  }

 private:
  Incoming<C> incoming_;
  const C* scale_;
  bool is_indexed_, is_one_;
  std::int64_t rows_of_image_ = 0;
  Rows<C, 1> rows_;
};

/// Writes tiles' gradients, those that are requested.
template <class C, class P>
class TileBackward {
 public:
  using Problem = P;
  /// All arrays of a tile are on the stack, of which a thread may have 64 KiB.
  static constexpr int kPairs = sizeof(C) == sizeof(float) ? kTilePairs : 80;

  TileBackward(const Problem& p, const GradOutputs& grads, const void* scale,
               const LossGradients& gradients)
      : loss_(p.loss),
        constants_(constants_of<C>(p)),
        pred_(reader_of<C, kPairs>(p, p.pred)),
        target_(reader_of<C, kPairs>(p, p.target)),
        weight_(p.weight.data, p.weight.dtype),
        by_loss_(p, grads.loss, scale),
        by_l1_(p, grads.l1, scale),
        d_pred_(gradients.pred, p.pred, gradients.keeps_pred_strides),
        d_target_(gradients.target, p.target, gradients.keeps_target_strides),
        d_weight_(gradients.weight, p.weight.dtype) {}

  void operator()(const Pairs& tile) {
    for_each_part(tile, [&](const Pairs& pairs) {
      compute(pairs);
      d_pred_.put(pairs.pred, pairs.gradient_row, pairs.count);
      d_target_.put(pairs.target, pairs.row, pairs.count);
      d_weight_.put(pairs.row, pairs.count);
    });
  }

  /// Adds the one requested gradient, pred's or the target's, to rows that pairs share.
  void add(const Pairs& tile) {
    for_each_part(tile, [&](const Pairs& pairs) {
      compute(pairs);
      (d_pred_.is_wanted() ? d_pred_ : d_target_).add(pairs.gradient_row, pairs.count);
    });
  }

  /// Up to kPairs, until the next call.
  const C* read_targets(const Places& elements, int count) { return target_.read(elements, count); }

  /// For invalid pairs.
  void zero_rows(const RowRange& rows) const {
    d_target_.zero(rows);
    d_weight_.zero(rows);
  }
  void zero_pred_rows(const RowRange& rows) const { d_pred_.zero(rows); }

 private:
  template <class Use>
  void for_each_part(const Pairs& tile, const Use& use) {
    if constexpr (kPairs == kTilePairs) return use(tile);
    for (int first = 0; first < tile.count; first += kPairs) {
      use(tile.part(first, std::min(kPairs, tile.count - first)));
    }
  }

  void compute(const Pairs& pairs) {
    const VectorCode<C>& code = vector_code<C>();
    const int n = pairs.count, whole = whole_blocks(n);
    const C* const pred = pred_.read(pairs.pred, n);
    const C* const target = target_.read(pairs.target, n);
    const C* const weight = weight_.is_given() ? weight_.read(pairs.row, n) : nullptr;
    C* const d_pred = d_pred_.rows(pairs.gradient_row, n);
    C* const d_target = d_target_.is_wanted() ? d_target_.rows(pairs.row, n) : nullptr;
    C* const d_weight = d_weight_.rows(pairs.row, n);
    const auto weighted = [&](const C* factors) {
      if (weight == nullptr) return factors;
      std::copy_n(factors, whole, weighted_.values);
      code.multiply(weight, n, weighted_.values);
      return static_cast<const C*>(weighted_.values);
    };
    if (by_loss_.are_given()) {
      const C* const by = by_loss_.of(pairs);
      box_code<C, Problem>().gradients(loss_, pred_.for_formula(pred, n),
                                       target_.for_formula(target, n), constants_, n, weighted(by),
                                       d_weight, d_pred, d_target);
      if (d_weight_.is_wanted()) code.multiply(by, n, d_weight);
      pred_.to_given(d_pred, n);
      if (d_target != nullptr) target_.to_given(d_target, n);
    } else {
      std::fill_n(d_weight, whole, C(0));
      std::fill_n(d_pred, Problem::kNumbers * whole, C(0));
      if (d_target != nullptr) std::fill_n(d_target, Problem::kNumbers * whole, C(0));
    }
    if (by_l1_.are_given()) {
      const C* const by = by_l1_.of(pairs);
      code.add_l1_gradients(pred, target, n, weighted(by), d_pred, d_target);
      if (d_weight_.is_wanted()) code.add_l1(pred, target, n, by, d_weight);
    }
  }

  decltype(Problem::loss) loss_;
  Constants<C> constants_;
  ReaderOf<C, Problem, kPairs> pred_, target_;
  RowReader<C, 1, kPairs> weight_;
  Rows<C, 1, kPairs> weighted_;
  Factors<C> by_loss_, by_l1_;
  BoxWriter<C, Problem::kNumbers, kPairs> d_pred_, d_target_;
  RowWriter<C, 1, kPairs> d_weight_;
};

}  // namespace boxloss::native
