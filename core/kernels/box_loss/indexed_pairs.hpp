// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "../../pairings/indexed.hpp"
#include "pair_args.hpp"

/// Pairs by index: what each backend's loop calls for one pair, and how gradients add up in rows
/// that several pairs share.
namespace boxloss {

/// A list of boxes, and the row that each pair reads.
template <class E>
struct ListedBoxes {
  StridedBoxes<E> boxes;
  Indices index;  ///< null data: pair k reads row k
  std::int64_t size, rows_of_image;

  BOXLOSS_HOST_DEVICE bool is_indexed() const { return index.data != nullptr; }
  BOXLOSS_HOST_DEVICE std::int64_t row_of(std::int64_t k) const {
    return is_indexed() ? index[k] : k;
  }
  BOXLOSS_HOST_DEVICE bool holds(std::int64_t row) const { return row >= 0 && row < size; }
  BOXLOSS_HOST_DEVICE std::int64_t image_of(std::int64_t row) const {
    return rows_of_image == size ? 0 : row / rows_of_image;
  }
  template <class B>
  BOXLOSS_HOST_DEVICE B get(std::int64_t row) const {
    const std::int64_t image = image_of(row);
    return boxes.template get<B>(image, row - image * rows_of_image);
  }
};

template <class E>
ListedBoxes<E> listed_boxes(const BoxView& view, const Indices& index) {
  return {strided_boxes<E>(view), index, view.images * view.slots, view.slots};
}

template <class P, class T>
struct IndexedPairs {
  ListedBoxes<P> pred;
  ListedBoxes<T> target;
  std::int64_t sets, of_set;  ///< how many sets, and pairs of each
};

template <class P, class T>
IndexedPairs<P, T> indexed_pairs(const PairProblem& p, const Indexed& pairing) {
  return {listed_boxes<P>(p.pred, pairing.pred), listed_boxes<T>(p.target, pairing.target),
          pairing.sets, pairing.pairs};
}

/// The rows of one pair in the two lists.
struct PairRows {
  std::int64_t pred, target;
  bool counts;
};

template <class P, class T>
BOXLOSS_HOST_DEVICE PairRows rows_of(const IndexedPairs<P, T>& pairs, std::int64_t k) {
  const std::int64_t pred = pairs.pred.row_of(k), target = pairs.target.row_of(k);
  return {pred, target, pairs.pred.holds(pred) && pairs.target.holds(target)};
}

/// Pair k, counted from the first of all sets.
template <class F, class P, class T, class C>
BOXLOSS_HOST_DEVICE LossesPartial forward_pair(const ForwardArgs<F, C>& a,
                                               const IndexedPairs<P, T>& pairs, std::int64_t k) {
  k = index_barrier(k);
  const PairRows rows = rows_of(pairs, k);
  PairLosses<C> all;
  if (rows.counts) {
    all = pair_losses(
        a, pairs.pred.template get<BoxOf<F, C>>(rows.pred), pairs.pred.boxes.boxes.format,
        pairs.target.template get<BoxOf<F, C>>(rows.target), pairs.target.boxes.boxes.format, k);
  }
  set_row_losses(a, k, all);
  return partial_of(all, rows.counts);
}

/// The gradients of a valid pair.
template <class F, class P, class T, class C>
BOXLOSS_HOST_DEVICE Gradients<BoxOf<F, C>> gradients_of(const BackwardArgs<F, P, T, C>& a,
                                                        const IndexedPairs<P, T>& pairs,
                                                        const PairRows& rows, std::int64_t k) {
  const std::int64_t set = pairs.sets == 1 ? 0 : k / pairs.of_set;  // no division for one set
  return pair_gradients(
      a, a.scale[set], set, k - set * pairs.of_set, pairs.pred.template get<BoxOf<F, C>>(rows.pred),
      pairs.pred.boxes.boxes.format, pairs.target.template get<BoxOf<F, C>>(rows.target),
      pairs.target.boxes.boxes.format, k);
}

/// Writes pair k's gradient for a list. Pairs without an index have rows of their own and write
/// them; others add to theirs.
template <class E, class B, class Add>
BOXLOSS_HOST_DEVICE void give(const BoxOutputs<E>& gradient, const ListedBoxes<E>& list,
                              std::int64_t row, const B& value, bool counts, const Add& add) {
  if (gradient.values.data == nullptr) return;
  if (!list.is_indexed()) {
    gradient.set(row, value);
  } else if (counts) {
    add(gradient, row, value);
  }
}

/// Backward of pair k. Rows of indexed lists are zero before, and `add(gradient, row, box)` adds to
/// them.
template <class F, class P, class T, class C, class Add>
BOXLOSS_HOST_DEVICE void backward_pair(const BackwardArgs<F, P, T, C>& a,
                                       const IndexedPairs<P, T>& pairs, std::int64_t k,
                                       const Add& add) {
  k = index_barrier(k);
  const PairRows rows = rows_of(pairs, k);
  Gradients<BoxOf<F, C>> d;
  if (rows.counts) d = gradients_of(a, pairs, rows, k);
  give(a.d_pred, pairs.pred, rows.pred, d.pred, rows.counts, add);
  if constexpr (!std::is_integral_v<T>) {
    give(a.d_target, pairs.target, rows.target, d.target, rows.counts, add);
  }
  if (a.d_weight.data != nullptr) a.d_weight.set(k, d.weight);
}

}  // namespace boxloss
