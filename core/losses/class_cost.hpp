// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/arithmetic.hpp"
#include "../math/functions.hpp"
#include "../math/host_device.hpp"

/// A matcher's cost of a class, given a query's score of it: a logit but for softmax.
namespace boxloss {

/// DETR's -softmax(logits)[class] (Carion et al., ECCV 2020), from the logarithm of the softmax.
template <class T>
BOXLOSS_HOST_DEVICE T softmax_cost(const T& log_probability) {
  // Above 0 by rounding alone.
  return -exp(select(log_probability > T(0), T(0), log_probability));
}

/// p = sigmoid(logit) and 1 - p, each to full precision.
template <class T>
struct Odds {
  T p, rest;
};

template <class T>
BOXLOSS_HOST_DEVICE Odds<T> odds(const T& logit) {
  const T e = exp(-magnitude(logit));
  const T larger_one = reciprocal(T(1) + e);
  const T smaller_one = e * larger_one;
  const auto is_negative = logit < T(0);
  return {select(is_negative, smaller_one, larger_one),
          select(is_negative, larger_one, smaller_one)};
}

template <class T>
BOXLOSS_HOST_DEVICE T sigmoid_cost(const T& logit) {
  return -odds(logit).p;
}

/// x^2, and x^gamma, for x in [0, 1]; 1 where both are 0.
struct Square {
  template <class T>
  BOXLOSS_HOST_DEVICE T operator()(const T& x) const {
    return x * x;
  }
};

template <class T>
struct Power {
  T gamma;

  BOXLOSS_HOST_DEVICE T operator()(const T& x) const {
    return select(gamma > T(0), exp(gamma * log(x)), T(1));
  }
};

/// Deformable DETR's (Zhu et al., ICLR 2021): the focal loss for this class, less that for any
/// other. `focus` is one of the above.
template <class T, class Focus>
BOXLOSS_HOST_DEVICE T focal_cost(const Odds<T>& o, const T& alpha, const Focus& focus) {
  const T other = (T(1) - alpha) * focus(o.p) * rough_log(o.rest + T(1e-8));
  const T this_one = alpha * focus(o.rest) * rough_log(o.p + T(1e-8));
  return other - this_one;
}

/// With a gamma of 2, the usual one, neither exp nor log is needed.
template <class T>
struct Focal {
  T alpha, gamma;
  bool squares;  ///< gamma is 2
};

template <class T>
BOXLOSS_HOST_DEVICE T focal_cost(const T& logit, const Focal<T>& focal) {
  if (focal.squares) return focal_cost(odds(logit), focal.alpha, Square());
  return focal_cost(odds(logit), focal.alpha, Power<T>{focal.gamma});
}

}  // namespace boxloss
