// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boxloss/box_loss.hpp>
#include <vector>

#include "cpu/operations.hpp"
#include "cpu/reference/indices.hpp"
#include "dtypes/elements.hpp"
#include "losses/eps.hpp"

/// What the references of all losses of pairs share: which pairs there are, by its own reading of
/// the pairings, and their sums in double. What depends on the kind of boxes is a struct of a
/// pair's two boxes, which has `of`, and functions of it: `loss_of`, `iou_of_pair`, `gradients_of`,
/// `l1_of` and `l1_gradients_of`.
namespace boxloss::reference {

/// A pair: where its boxes are, its row in the unreduced loss, and the set that it is reduced into.
/// Its incoming gradient is value (grad_image, grad_slot).
struct Pair {
  std::int64_t pred_image, pred_slot;
  std::int64_t target_image, target_slot;
  std::int64_t row, set;
  std::int64_t grad_image, grad_slot;
  bool counts;
};

inline std::int64_t value_offset(const BoxView& view, std::int64_t image, std::int64_t slot,
                                 std::int64_t coordinate) {
  return image * view.image_stride + slot * view.slot_stride + coordinate * view.coordinate_stride;
}

template <class C, int kNumbers>
using Numbers = std::array<C, static_cast<std::size_t>(kNumbers)>;

/// Those of both boxes, or the derivatives with respect to them.
template <int kNumbers>
struct PairNumbers {
  Numbers<double, kNumbers> pred, target;
};

/// Of one pair: the loss, and its derivatives times what comes in.
template <int kNumbers>
struct PairDerivatives {
  double loss;
  PairNumbers<kNumbers> by;
};

template <class C, int kNumbers>
Numbers<C, kNumbers> raw_values(const BoxView& view, std::int64_t image, std::int64_t slot) {
  const Elements<Any> values{view.data, view.dtype};
  Numbers<C, kNumbers> raw;
  for (int i = 0; i < kNumbers; ++i) {
    raw[static_cast<std::size_t>(i)] = values.get<C>(value_offset(view, image, slot, i));
  }
  return raw;
}

/// Slot j of image b.
template <int kNumbers>
Pair find_slot(const PairProblem& p, std::int64_t b, std::int64_t j) {
  if (p.pairing.kind == Pairing::Kind::kOffsets) {
    const OwnRows own = own_rows(p.pairing.data, b, p.target.slots);
    const std::int64_t row = own.begin + j;
    return {b, j, 0, row, row, 0, 0, row, row < own.end};
  }
  const std::int64_t row = b * p.pred.slots + j;
  Pair pair{b, j, b, j, row, 0, b, j, true};
  if (p.pairing.kind == Pairing::Kind::kLengths) pair.counts = j < index_at(p.pairing.data, b);
  if (p.pairing.kind == Pairing::Kind::kMask) {
    pair.counts = static_cast<const std::uint8_t*>(p.pairing.data.data)[row] != 0;
  }
  if (p.pairing.kind == Pairing::Kind::kZeroPadded) {
    pair.counts = false;
    for (const double value : raw_values<double, kNumbers>(p.target, b, j)) {
      pair.counts = pair.counts || value != 0;
    }
  }
  return pair;
}

/// Pair k of a set.
inline Pair find_indexed(const PairProblem& p, std::int64_t set, std::int64_t k) {
  const std::int64_t row = set * p.pairing.pairs + k;
  const auto row_in = [row](const BoxView& view) {
    return view.rows.data == nullptr ? row : index_at(view.rows, row);
  };
  const auto is_in = [](std::int64_t at, const BoxView& view) {
    return 0 <= at && at < view.images * view.slots;
  };
  const std::int64_t pred = row_in(p.pred), target = row_in(p.target);
  if (!is_in(pred, p.pred) || !is_in(target, p.target)) return {};
  return {pred / p.pred.slots,
          pred % p.pred.slots,
          target / p.target.slots,
          target % p.target.slots,
          row,
          set,
          set,
          k,
          true};
}

inline double weight_at(const PairProblem& p, std::int64_t row) {
  if (p.weight.data == nullptr) return 1;
  return Elements<Any>{p.weight.data, p.weight.dtype}.get<double>(row);
}

/// As implementations have them, rounded to the compute dtype.
template <class Problem>
Constants<double> constants_in_double(const Problem& p) {
  if (compute_dtype(p) == DType::kF64) return constants_of<double>(p);
  return converted<double>(constants_of<float>(p));
}

/// Calls visit(pair, boxes) for each valid pair.
template <class Boxes, class Problem, class Visit>
void for_each_pair(const Problem& p, const Visit& visit) {
  const bool is_indexed = p.pairing.kind == Pairing::Kind::kIndexed;
  const std::int64_t images = is_indexed ? p.pairing.sets : p.pred.images;
  const std::int64_t slots = is_indexed ? p.pairing.pairs : p.pred.slots;
  for (std::int64_t b = 0; b < images; ++b) {
    for (std::int64_t j = 0; j < slots; ++j) {
      const Pair pair = is_indexed ? find_indexed(p, b, j) : find_slot<Problem::kNumbers>(p, b, j);
      if (!pair.counts) continue;
      visit(pair, compute_dtype(p) == DType::kF64 ? Boxes::template of<double>(p, pair)
                                                  : Boxes::template of<float>(p, pair));
    }
  }
}

/// A sum for each set.
struct Total {
  double loss = 0, l1 = 0;
  std::int64_t count = 0;
};

inline double divisor_of(const PairProblem& p, std::int64_t set, const Total& total) {
  if (p.reduction != Reduction::kMean || total.count == 0) return 1;
  if (p.normalizer.data == nullptr) return static_cast<double>(total.count);
  return Elements<Any>{p.normalizer.data, p.normalizer.dtype}.get<double>(set *
                                                                          p.normalizer_stride);
}

/// Sums of gradients in double, written at the end in the array's own dtype; or nothing, if the
/// gradient is not requested.
class Sums {
 public:
  Sums(void* data, DType dtype, std::int64_t count)
      : output_{data, dtype}, sums_(static_cast<std::size_t>(data == nullptr ? 0 : count)) {}
  ~Sums() {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      output_.set(static_cast<std::int64_t>(i), sums_[i]);
    }
  }
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;

  void add(std::int64_t i, double value) {
    if (!sums_.empty()) sums_[static_cast<std::size_t>(i)] += value;
  }

 private:
  Outputs<Any> output_;
  std::vector<double> sums_;
};

/// The same for boxes. The gradient has their strides or, if it does not keep them, its own.
template <int kNumbers>
class BoxSums {
 public:
  BoxSums(void* data, const BoxView& boxes, bool keeps_strides)
      : sums_(data, boxes.dtype, kNumbers * boxes.images * boxes.slots), place_(boxes) {
    if (keeps_strides) return;
    place_.image_stride = kNumbers * boxes.slots;
    place_.slot_stride = kNumbers;
    place_.coordinate_stride = 1;
  }

  void add(std::int64_t image, std::int64_t slot, const Numbers<double, kNumbers>& box) {
    for (int i = 0; i < kNumbers; ++i) {
      sums_.add(value_offset(place_, image, slot, i), box[static_cast<std::size_t>(i)]);
    }
  }

 private:
  Sums sums_;
  BoxView place_;
};

/// How a problem's pairs are read: `of` gives a pair's boxes, for functions of that type.
template <class Problem>
struct BoxesOf;

template <class Problem>
void Operations::forward(const Problem& p, const LossOutputs& outputs, const Execution&) {
  using Boxes = typename BoxesOf<Problem>::Type;
  const DType dtype = compute_dtype(p);
  const Outputs<Any> losses{outputs.loss, dtype}, scale{outputs.scale, dtype};
  const Outputs<Any> l1s{outputs.l1, dtype}, ious{outputs.iou, dtype};
  const bool is_reduced = p.reduction != Reduction::kNone;
  const bool is_indexed = p.pairing.kind == Pairing::Kind::kIndexed;
  const bool has_slots = loss_rows(p) > 0 && (is_indexed || p.pred.images * p.pred.slots > 0);
  std::vector<Total> totals(static_cast<std::size_t>(loss_sets(p)));

  for (std::int64_t row = 0; row < loss_rows(p); ++row) {
    if (!is_reduced) losses.set(row, 0.0);
    if (!is_reduced && l1s.data) l1s.set(row, 0.0);
    if (ious.data) ious.set(row, 0.0);
  }
  const Constants<double> constants = constants_in_double(p);
  for_each_pair<Boxes>(p, [&](const Pair& pair, const Boxes& boxes) {
    const double weight = weight_at(p, pair.row);
    const double loss = loss_of(p, boxes, constants);
    if (!is_reduced) losses.set(pair.row, loss * weight);
    if (ious.data) ious.set(pair.row, iou_of_pair(boxes, constants));
    Total& total = totals[static_cast<std::size_t>(pair.set)];
    total.loss += loss * weight;
    ++total.count;
    if (!l1s.data) return;
    const double l1 = l1_of(boxes);
    if (!is_reduced) l1s.set(pair.row, l1 * weight);
    total.l1 += l1 * weight;
  });

  for (std::int64_t set = 0; set < loss_sets(p); ++set) {
    const Total& total = totals[static_cast<std::size_t>(set)];
    const double divisor = has_slots ? divisor_of(p, set, total) : 1;
    scale.set(set, has_slots ? 1 / divisor : 0.0);
    if (is_reduced) losses.set(set, total.loss / divisor);
    if (is_reduced && l1s.data) l1s.set(set, total.l1 / divisor);
  }
}

template <class Problem>
void Operations::backward(const Problem& p, const GradOutputs& grads, const void* scale,
                          const LossGradients& gradients, const Execution&) {
  using Boxes = typename BoxesOf<Problem>::Type;
  const DType dtype = compute_dtype(p);
  BoxSums<Problem::kNumbers> d_pred(gradients.pred, p.pred, gradients.keeps_pred_strides);
  BoxSums<Problem::kNumbers> d_target(gradients.target, p.target, gradients.keeps_target_strides);
  Sums d_weight(gradients.weight, p.weight.dtype, loss_rows(p));
  const auto incoming = [&](const GradView& grad, const Pair& pair) {
    const Elements<Any> values{grad.data, dtype};
    const double factor = Elements<Any>{scale, dtype}.get<double>(pair.set);
    return factor * values.get<double>(pair.grad_image * grad.image_stride +
                                       pair.grad_slot * grad.slot_stride);
  };
  const Constants<double> constants = constants_in_double(p);
  for_each_pair<Boxes>(p, [&](const Pair& pair, const Boxes& boxes) {
    const auto add_boxes = [&](const PairNumbers<Problem::kNumbers>& d) {
      d_pred.add(pair.pred_image, pair.pred_slot, d.pred);
      d_target.add(pair.target_image, pair.target_slot, d.target);
    };
    const double weight = weight_at(p, pair.row);
    if (grads.loss.data != nullptr) {
      const double by_loss = incoming(grads.loss, pair);
      const auto [loss, d] = gradients_of(p, boxes, constants, by_loss * weight);
      add_boxes(d);
      d_weight.add(pair.row, by_loss * loss);
    }
    if (grads.l1.data != nullptr) {
      const double by_l1 = incoming(grads.l1, pair);
      add_boxes(l1_gradients_of(boxes, by_l1 * weight));
      d_weight.add(pair.row, by_l1 * l1_of(boxes));
    }
  });
}

}  // namespace boxloss::reference
