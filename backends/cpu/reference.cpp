// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "dtypes/elements.hpp"
#include "losses/formulas.hpp"
#include "src/backends.hpp"

/// The oracle: one pair after the other, in double, with its own reading of the pairings. Slow on
/// purpose; every other implementation is compared with it.
namespace boxloss {
namespace {

/// Where slot (b, j) finds its target, and its row in the unreduced loss.
struct Slot {
  std::int64_t image, target, row;
  bool counts;
};

std::int64_t index_at(const Pairing& pairing, std::int64_t i) {
  return pairing.data.dtype == DType::kI64 ? static_cast<const std::int64_t*>(pairing.data.data)[i]
                                           : static_cast<const std::int32_t*>(pairing.data.data)[i];
}

std::int64_t box_offset(const BoxView& view, std::int64_t image, std::int64_t slot) {
  return image * view.image_stride + slot * view.slot_stride;
}

Slot find_slot(const LossProblem& p, std::int64_t b, std::int64_t j) {
  if (p.pairing.kind == Pairing::Kind::kOffsets) {
    const std::int64_t rows = p.target.slots;
    const std::int64_t begin = std::clamp<std::int64_t>(index_at(p.pairing, b), 0, rows);
    const std::int64_t end = std::clamp<std::int64_t>(index_at(p.pairing, b + 1), begin, rows);
    return {0, begin + j, begin + j, j < end - begin};
  }
  Slot slot{b, j, b * p.pred.slots + j, true};
  if (p.pairing.kind == Pairing::Kind::kLengths) slot.counts = j < index_at(p.pairing, b);
  if (p.pairing.kind == Pairing::Kind::kMask) {
    slot.counts = static_cast<const std::uint8_t*>(p.pairing.data.data)[slot.row] != 0;
  }
  if (p.pairing.kind == Pairing::Kind::kZeroPadded) {
    const Elements<Any> target{p.target.data, p.target.dtype};
    const Box<double> raw = target.get_box<double>(box_offset(p.target, b, j));
    slot.counts = raw.x1 != 0 || raw.y1 != 0 || raw.x2 != 0 || raw.y2 != 0;
  }
  return slot;
}

/// Corners rounded to the compute dtype C, as every implementation rounds them, then widened.
template <class C>
Box<double> corners(const BoxView& view, std::int64_t image, std::int64_t slot) {
  const Elements<Any> values{view.data, view.dtype};
  const Box<C> raw = values.get_box<C>(box_offset(view, image, slot));
  const Box<C> box = to_corners(raw, view.format);
  return {box.x1, box.y1, box.x2, box.y2};
}

Box<double> corners(const LossProblem& p, const BoxView& view, std::int64_t image,
                    std::int64_t slot) {
  return compute_dtype(p) == DType::kF64 ? corners<double>(view, image, slot)
                                         : corners<float>(view, image, slot);
}

double weight_at(const LossProblem& p, std::int64_t row) {
  if (p.weight.data == nullptr) return 1;
  return Elements<Any>{p.weight.data, p.weight.dtype}.get<double>(row);
}

Eps<double> eps_of(const LossProblem& p) {
  // Implementations compute with eps rounded to the compute dtype; so must the oracle.
  const double eps = compute_dtype(p) == DType::kF64 ? p.eps : static_cast<float>(p.eps);
  return make_eps<double>(eps, p.eps_mode);
}

/// Calls visit(slot, image, j, pred corners, target corners) for each pair that counts.
template <class Visit>
void for_each_pair(const LossProblem& p, const Visit& visit) {
  for (std::int64_t b = 0; b < p.pred.images; ++b) {
    for (std::int64_t j = 0; j < p.pred.slots; ++j) {
      const Slot slot = find_slot(p, b, j);
      if (!slot.counts) continue;
      visit(slot, b, j, corners(p, p.pred, b, j), corners(p, p.target, slot.image, slot.target));
    }
  }
}

void forward(const LossProblem& p, const LossOutputs& outputs, const Execution&) {
  const DType dtype = compute_dtype(p);
  const Outputs<Any> losses{outputs.loss, dtype};
  const Outputs<Any> scale{outputs.scale, dtype};
  const std::int64_t rows = loss_rows(p);
  const bool no_slots = p.pred.images * p.pred.slots == 0 || rows == 0;
  double sum = 0;
  std::int64_t count = 0;

  if (p.reduction == Reduction::kNone) {
    for (std::int64_t row = 0; row < rows; ++row) losses.set(row, 0.0);
  }
  for_each_pair(p, [&](const Slot& slot, std::int64_t, std::int64_t, const Box<double>& pred,
                       const Box<double>& target) {
    const double loss =
        with_formula(p.loss, [&](auto formula) { return formula.loss(pred, target, eps_of(p)); });
    const double value = loss * weight_at(p, slot.row);
    if (p.reduction == Reduction::kNone) losses.set(slot.row, value);
    sum += value;
    ++count;
  });

  double divisor = 1;
  if (p.reduction == Reduction::kMean)
    divisor = static_cast<double>(std::max<std::int64_t>(count, 1));
  if (p.normalizer.data != nullptr && !no_slots) {
    divisor = Elements<Any>{p.normalizer.data, p.normalizer.dtype}.get<double>(0);
  }
  scale.set(0, no_slots ? 0.0 : 1 / divisor);
  if (p.reduction != Reduction::kNone) losses.set(0, sum / divisor);
}

void backward(const LossProblem& p, const GradView& grad_loss, const void* scale,
              const LossGradients& gradients, const Execution&) {
  const DType dtype = compute_dtype(p);
  const std::int64_t slots = p.pred.images * p.pred.slots;
  const std::int64_t rows = loss_rows(p);
  const Outputs<Any> d_pred{gradients.pred, p.pred.dtype};
  const Outputs<Any> d_target{gradients.target, p.target.dtype};
  const Outputs<Any> d_weight{gradients.weight, p.weight.dtype};
  if (gradients.pred) std::memset(gradients.pred, 0, 4 * slots * size_of(p.pred.dtype));
  if (gradients.target) std::memset(gradients.target, 0, 4 * rows * size_of(p.target.dtype));
  if (gradients.weight) std::memset(gradients.weight, 0, rows * size_of(p.weight.dtype));

  const double factor = Elements<Any>{scale, dtype}.get<double>(0);
  const Elements<Any> upstream{grad_loss.data, dtype};
  for_each_pair(p, [&](const Slot& slot, std::int64_t b, std::int64_t j, const Box<double>& pred,
                       const Box<double>& target) {
    const std::int64_t at =
        slot.image * grad_loss.image_stride + slot.target * grad_loss.slot_stride;
    const double by_loss = upstream.get<double>(at) * factor;
    const double by_pair = by_loss * weight_at(p, slot.row);
    const PairGradient<double> d = with_formula(
        p.loss, [&](auto formula) { return gradient(formula, pred, target, eps_of(p)); });
    if (gradients.pred) {
      d_pred.set_box(4 * (b * p.pred.slots + j),
                     from_corners_gradient(by_pair * d.pred, p.pred.format));
    }
    if (gradients.target) {
      d_target.set_box(4 * slot.row, from_corners_gradient(by_pair * d.target, p.target.format));
    }
    if (gradients.weight) d_weight.set(slot.row, by_loss * d.loss);
  });
}

}  // namespace

Implementation cpu::reference() {
  return {"cpu/reference",
          Device::kCpu,
          0,
          kLosses,
          {Pairing::Kind::kDense, Pairing::Kind::kZeroPadded, Pairing::Kind::kLengths,
           Pairing::Kind::kMask, Pairing::Kind::kOffsets},
          [](const LossProblem&) { return std::size_t{0}; },
          forward,
          backward};
}

}  // namespace boxloss
