// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../pairings/any_slots.hpp"
#include "pair_args.hpp"

/// Contiguous rotated boxes of one image, in the compute type, a pair at a time: rows of five
/// numbers are not aligned for more. Backends' loops call this for pairings that do not depend on
/// the image.
namespace boxloss {

template <class C>
struct RotatedRows {
  const C *pred, *target;
  const C* weight;  ///< null: none
  AnySlots pairing;

  BOXLOSS_HOST_DEVICE static RotatedBox<C> box(const C* boxes, std::int64_t row) {
    return Elements<C>{boxes}.template get_box<RotatedBox<C>>(5 * row);
  }
  BOXLOSS_HOST_DEVICE bool counts(const RotatedBox<C>& other, std::int64_t row) const {
    return pairing.counts(row) && pairing.counts(other);
  }
};

template <class C>
RotatedRows<C> rotated_rows(const RotatedLossProblem& p) {
  return {static_cast<const C*>(p.pred.data), static_cast<const C*>(p.target.data),
          static_cast<const C*>(p.weight.data), any_slots(p)};
}

/// Whether a problem's boxes and weight are such rows, if the boxes' dtype is the compute type.
inline bool are_rows(const RotatedLossProblem& p) {
  const auto is_list = [](const BoxView& boxes) {
    return boxes.images == 1 && boxes.slot_stride == 5 && boxes.coordinate_stride == 1;
  };
  const Pairing::Kind kind = p.pairing.kind;
  return is_list(p.pred) && is_list(p.target) && kind != Pairing::Kind::kLengths &&
         kind != Pairing::Kind::kOffsets && kind != Pairing::Kind::kIndexed &&
         (p.weight.data == nullptr || p.weight.dtype == p.pred.dtype);
}

/// These loops compute the loss only, not IoU.
inline bool are_rows(const RotatedLossProblem& p, const LossOutputs& outputs) {
  return are_rows(p) && outputs.iou == nullptr;
}

inline bool are_rows(const RotatedLossProblem& p, const GradOutputs& grads,
                     const LossGradients& gradients) {
  return are_rows(p) && grads.loss.data != nullptr && gradients.weight == nullptr;
}

template <class F, class C>
BOXLOSS_HOST_DEVICE LossPartial forward_row(const ForwardArgs<F, C>& a, const RotatedRows<C>& rows,
                                            std::int64_t row) {
  const RotatedBox<C> target = rows.box(rows.target, row);
  const bool counts = rows.counts(target, row);
  C loss = 0;
  if (counts) {
    loss = a.formula.loss(rows.box(rows.pred, row), target, a.constants);
    if (rows.weight != nullptr) loss *= rows.weight[row];
  }
  if (a.losses != nullptr) a.losses[row] = loss;
  return {{static_cast<double>(loss)}, counts ? 1ull : 0ull};
}

/// The target's gradient only if kTarget: it takes registers.
template <bool kTarget, class F, class C>
BOXLOSS_HOST_DEVICE void backward_row(const BackwardArgs<F, C, C, C>& a, const RotatedRows<C>& rows,
                                      std::int64_t row) {
  RotatedPairGradient<C> d{};
  const RotatedBox<C> target = rows.box(rows.target, row);
  if (rows.counts(target, row)) {
    C by = *a.scale * a.grad_loss.at(0, row);
    if (rows.weight != nullptr) by *= rows.weight[row];
    d = a.formula.derivatives(rows.box(rows.pred, row), target, a.constants);
    d.pred = by * d.pred;
    if (kTarget) d.target = by * d.target;
  }
  if (a.d_pred.values.data != nullptr) a.d_pred.set(row, d.pred);
  if (kTarget) a.d_target.set(row, d.target);
}

}  // namespace boxloss
