// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "cpu/operations.hpp"
#include "cpu/reference/indices.hpp"
#include "dtypes/elements.hpp"
#include "losses/formulas.hpp"
#include "losses/l1.hpp"

/// The reference: one pair after the other, in double, with its own reading of the pairings. It is
/// slow; every other implementation is compared with it.
namespace boxloss {
namespace {

/// A pair: where its boxes are, its row in the unreduced loss, and the set that it is reduced into.
/// Its incoming gradient is value (grad_image, grad_slot).
struct Pair {
  std::int64_t pred_image, pred_slot;
  std::int64_t target_image, target_slot;
  std::int64_t row, set;
  std::int64_t grad_image, grad_slot;
  bool counts;
};

std::int64_t value_offset(const BoxView& view, std::int64_t image, std::int64_t slot,
                          std::int64_t coordinate) {
  return image * view.image_stride + slot * view.slot_stride + coordinate * view.coordinate_stride;
}

template <class C>
Box<C> raw_values(const BoxView& view, std::int64_t image, std::int64_t slot) {
  const Elements<Any> values{view.data, view.dtype};
  const auto value = [&](std::int64_t coordinate) {
    return values.get<C>(value_offset(view, image, slot, coordinate));
  };
  return {value(0), value(1), value(2), value(3)};
}

/// Slot j of image b.
Pair find_slot(const LossProblem& p, std::int64_t b, std::int64_t j) {
  if (p.pairing.kind == Pairing::Kind::kOffsets) {
    const reference::OwnRows own = reference::own_rows(p.pairing.data, b, p.target.slots);
    const std::int64_t row = own.begin + j;
    return {b, j, 0, row, row, 0, 0, row, row < own.end};
  }
  const std::int64_t row = b * p.pred.slots + j;
  Pair pair{b, j, b, j, row, 0, b, j, true};
  if (p.pairing.kind == Pairing::Kind::kLengths)
    pair.counts = j < reference::index_at(p.pairing.data, b);
  if (p.pairing.kind == Pairing::Kind::kMask) {
    pair.counts = static_cast<const std::uint8_t*>(p.pairing.data.data)[row] != 0;
  }
  if (p.pairing.kind == Pairing::Kind::kZeroPadded) {
    const Box<double> raw = raw_values<double>(p.target, b, j);
    pair.counts = raw.x1 != 0 || raw.y1 != 0 || raw.x2 != 0 || raw.y2 != 0;
  }
  return pair;
}

/// Pair k of a set.
Pair find_indexed(const LossProblem& p, std::int64_t set, std::int64_t k) {
  const std::int64_t row = set * p.pairing.pairs + k;
  const auto row_in = [row](const BoxView& view) {
    return view.rows.data == nullptr ? row : reference::index_at(view.rows, row);
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

/// Corners rounded to the compute dtype C, as every implementation rounds them, then widened.
template <class C>
Box<double> corners(const BoxView& view, std::int64_t image, std::int64_t slot) {
  const Box<C> box = to_corners(raw_values<C>(view, image, slot), view.format);
  return {box.x1, box.y1, box.x2, box.y2};
}

/// The two boxes of a pair: as corners and, for l1, as given.
struct PairBoxes {
  Box<double> pred, target, raw_pred, raw_target;
};

template <class C>
PairBoxes boxes_in(const LossProblem& p, const Pair& pair) {
  const auto widened = [](const Box<C>& b) { return Box<double>{b.x1, b.y1, b.x2, b.y2}; };
  return {corners<C>(p.pred, pair.pred_image, pair.pred_slot),
          corners<C>(p.target, pair.target_image, pair.target_slot),
          widened(raw_values<C>(p.pred, pair.pred_image, pair.pred_slot)),
          widened(raw_values<C>(p.target, pair.target_image, pair.target_slot))};
}

double weight_at(const LossProblem& p, std::int64_t row) {
  if (p.weight.data == nullptr) return 1;
  return Elements<Any>{p.weight.data, p.weight.dtype}.get<double>(row);
}

/// As implementations have them, rounded to the compute dtype.
Constants<double> constants_in_double(const LossProblem& p) {
  if (compute_dtype(p) == DType::kF64) return constants_of<double>(p);
  return converted<double>(constants_of<float>(p));
}

/// Calls visit(pair, boxes) for each valid pair.
template <class Visit>
void for_each_pair(const LossProblem& p, const Visit& visit) {
  const bool is_indexed = p.pairing.kind == Pairing::Kind::kIndexed;
  const std::int64_t images = is_indexed ? p.pairing.sets : p.pred.images;
  const std::int64_t slots = is_indexed ? p.pairing.pairs : p.pred.slots;
  for (std::int64_t b = 0; b < images; ++b) {
    for (std::int64_t j = 0; j < slots; ++j) {
      const Pair pair = is_indexed ? find_indexed(p, b, j) : find_slot(p, b, j);
      if (!pair.counts) continue;
      visit(pair,
            compute_dtype(p) == DType::kF64 ? boxes_in<double>(p, pair) : boxes_in<float>(p, pair));
    }
  }
}

/// A sum for each set.
struct Total {
  double loss = 0, l1 = 0;
  std::int64_t count = 0;
};

double divisor_of(const LossProblem& p, std::int64_t set, const Total& total) {
  if (p.reduction != Reduction::kMean || total.count == 0) return 1;
  if (p.normalizer.data == nullptr) return static_cast<double>(total.count);
  return Elements<Any>{p.normalizer.data, p.normalizer.dtype}.get<double>(set *
                                                                          p.normalizer_stride);
}

}  // namespace

void reference::forward(const LossProblem& p, const LossOutputs& outputs, const Execution&) {
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
  for_each_pair(p, [&](const Pair& pair, const PairBoxes& boxes) {
    const double weight = weight_at(p, pair.row);
    const double loss = with_formula(p.loss, [&](auto formula) {
      return formula.loss(boxes.pred, boxes.target, constants_in_double(p));
    });
    const double l1 = l1_distance(boxes.raw_pred, boxes.raw_target);
    if (!is_reduced) losses.set(pair.row, loss * weight);
    if (!is_reduced && l1s.data) l1s.set(pair.row, l1 * weight);
    if (ious.data)
      ious.set(pair.row, iou_of(overlap(boxes.pred, boxes.target, constants_in_double(p))));
    Total& total = totals[static_cast<std::size_t>(pair.set)];
    total.loss += loss * weight;
    total.l1 += l1 * weight;
    ++total.count;
  });

  for (std::int64_t set = 0; set < loss_sets(p); ++set) {
    const Total& total = totals[static_cast<std::size_t>(set)];
    const double divisor = has_slots ? divisor_of(p, set, total) : 1;
    scale.set(set, has_slots ? 1 / divisor : 0.0);
    if (is_reduced) losses.set(set, total.loss / divisor);
    if (is_reduced && l1s.data) l1s.set(set, total.l1 / divisor);
  }
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
class BoxSums {
 public:
  BoxSums(void* data, const BoxView& boxes, bool keeps_strides)
      : sums_(data, boxes.dtype, 4 * boxes.images * boxes.slots), place_(boxes) {
    if (keeps_strides) return;
    place_.image_stride = 4 * boxes.slots;
    place_.slot_stride = 4;
    place_.coordinate_stride = 1;
  }

  void add(std::int64_t image, std::int64_t slot, const Box<double>& box) {
    sums_.add(value_offset(place_, image, slot, 0), box.x1);
    sums_.add(value_offset(place_, image, slot, 1), box.y1);
    sums_.add(value_offset(place_, image, slot, 2), box.x2);
    sums_.add(value_offset(place_, image, slot, 3), box.y2);
  }

 private:
  Sums sums_;
  BoxView place_;
};

void reference::backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
                         const LossGradients& gradients, const Execution&) {
  const DType dtype = compute_dtype(p);
  BoxSums d_pred(gradients.pred, p.pred, gradients.keeps_pred_strides);
  BoxSums d_target(gradients.target, p.target, gradients.keeps_target_strides);
  Sums d_weight(gradients.weight, p.weight.dtype, loss_rows(p));
  const auto incoming = [&](const GradView& grad, const Pair& pair) {
    const Elements<Any> values{grad.data, dtype};
    const double factor = Elements<Any>{scale, dtype}.get<double>(pair.set);
    return factor * values.get<double>(pair.grad_image * grad.image_stride +
                                       pair.grad_slot * grad.slot_stride);
  };
  for_each_pair(p, [&](const Pair& pair, const PairBoxes& boxes) {
    const auto add_boxes = [&](const Box<double>& of_pred, const Box<double>& of_target) {
      d_pred.add(pair.pred_image, pair.pred_slot, of_pred);
      d_target.add(pair.target_image, pair.target_slot, of_target);
    };
    const double weight = weight_at(p, pair.row);
    if (grads.loss.data != nullptr) {
      const double by_loss = incoming(grads.loss, pair);
      const PairGradient<double> d = with_formula(p.loss, [&](auto formula) {
        return gradient(formula, boxes.pred, boxes.target, constants_in_double(p));
      });
      const double by_pair = by_loss * weight;
      add_boxes(from_corners_gradient(by_pair * d.pred, p.pred.format),
                from_corners_gradient(by_pair * d.target, p.target.format));
      d_weight.add(pair.row, by_loss * d.loss);
    }
    if (grads.l1.data != nullptr) {
      const double by_l1 = incoming(grads.l1, pair);
      const Box<double> signs = l1_signs(boxes.raw_pred, boxes.raw_target);
      add_boxes((by_l1 * weight) * signs, (-by_l1 * weight) * signs);
      d_weight.add(pair.row, by_l1 * l1_distance(boxes.raw_pred, boxes.raw_target));
    }
  });
}

}  // namespace boxloss
