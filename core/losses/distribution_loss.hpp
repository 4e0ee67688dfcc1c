// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/arithmetic.hpp"
#include "../math/functions.hpp"
#include "../math/host_device.hpp"

/// D-FINE's losses of one side, whose softmax is given by its largest logit and the sum of exp(x -
/// largest). transformers calls them unimodal_distribution_focal_loss and loss_ddf.
namespace boxloss {

/// One axis of a box in cxcywh.
template <class T>
struct Extent {
  T center, size;
};

/// A side's distance from the reference's, in units of the reference's size / reg_scale: of left or
/// top, or of right or bottom.
template <class T>
BOXLOSS_HOST_DEVICE T side_offset(const Extent<T>& reference, const Extent<T>& target, bool is_end,
                                  const T& reg_scale) {
  const T shift = is_end ? target.center - reference.center : reference.center - target.center;
  const T unit = reference.size * reciprocal(reg_scale) + T(1e-16);
  return (T(0.5) * target.size + shift) * reciprocal(unit) - T(0.5) * reg_scale;
}

/// x, but no less than low and no more than high; NaN stays NaN.
template <class T>
BOXLOSS_HOST_DEVICE T within(const T& x, const T& low, const T& high) {
  return select(x > high, high, at_least(x, low));
}

/// How much of a side is to be in each of two neighbouring bins.
template <class T>
struct BinShares {
  T left, right;
};

template <class T>
BOXLOSS_HOST_DEVICE BinShares<T> bin_shares(const T& offset, const T& left_edge,
                                            const T& right_edge) {
  const T right = (offset - left_edge) * reciprocal(right_edge - left_edge);
  return {T(1) - right, right};
}

/// The cross-entropy towards two bins, given the logarithm of the sum and how far their logits are
/// below the largest.
template <class T>
BOXLOSS_HOST_DEVICE T shared_entropy(const BinShares<T>& shares, const T& log_sum,
                                     const T& left_below, const T& right_below) {
  return log_sum + (shares.left * left_below + shares.right * right_below);
}

/// Its derivative by a logit of probability p, of which `wanted` is to be in that bin. The shares'
/// sum is 1, or NaN.
template <class T>
BOXLOSS_HOST_DEVICE T entropy_slope(const BinShares<T>& shares, const T& p, const T& wanted) {
  return (shares.left + shares.right) * p - wanted;
}

/// A bin's part of what the teacher's sum is multiplied with for the divergence, given both logits,
/// less the largest and divided by the temperature, and exp of the teacher's.
template <class T>
BOXLOSS_HOST_DEVICE T divergence_part(const T& teacher_exp, const T& teacher, const T& own) {
  return teacher_exp * (teacher - own);
}

/// KL(teacher, own), given the sum of its parts and both sums of exps.
template <class T>
BOXLOSS_HOST_DEVICE T divergence(const T& parts, const T& teacher_sum, const T& own_sum) {
  return parts * reciprocal(teacher_sum) + (log(own_sum) - log(teacher_sum));
}

}  // namespace boxloss
