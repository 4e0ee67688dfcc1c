// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/class_loss.hpp>

#include "../math/arithmetic.hpp"
#include "../math/functions.hpp"
#include "../math/host_device.hpp"

/// The class losses of one logit, but for softmax': of a query's own class, and of all others.
/// Computed from the logit alone, by what stays finite for every finite logit.
namespace boxloss {

/// p = sigmoid(x) and 1 - p, -log(1 - p) and -log(p), each to full precision.
template <class T>
struct LogitParts {
  T p, rest;
  T miss_none;  ///< BCE(x, 0) = log(1 + exp(x))
  T miss_one;   ///< BCE(x, 1) = log(1 + exp(-x))
};

/// By branches of x alone, of which either is right at 0: a formula's derivatives are, too.
template <class T>
BOXLOSS_HOST_DEVICE LogitParts<T> logit_parts(const T& x) {
  const auto is_negative = x < T(0);
  const T e = exp(exponent(select(is_negative, x, -x)));
  const T larger_one = reciprocal_of_normal(T(1) + e);
  const T smaller_one = e * larger_one;
  const T small = log1p_of_fraction(e);
  return {select(is_negative, smaller_one, larger_one),
          select(is_negative, larger_one, smaller_one), select(is_negative, T(0), x) + small,
          select(is_negative, -x, T(0)) + small};
}

/// How x^gamma is computed for x in [0, 1]: of the usual gammas without exp and log.
enum class Focus : std::uint8_t { kOne, kSquare, kPower };

/// A mode's numbers.
template <class T>
struct ClassNumbers {
  ClassLoss mode;
  Focus focus;
  bool derives_focus;  ///< else p^gamma is a constant of the gradient
  bool reads_quality;  ///< else kIaBce's power of it is 0
  T alpha, gamma;
  T of_own, of_others;  ///< factors
  T no_object_weight;
};

/// p^gamma, given p and -log(p).
template <class T>
BOXLOSS_HOST_DEVICE T focused(const ClassNumbers<T>& n, const T& p, const T& miss) {
  if (n.focus == Focus::kOne) return T(1);
  if (n.focus == Focus::kSquare) return p * p;
  return exp(-(n.gamma * miss));
}

/// The loss of a class that is not the query's own, and its derivative by the logit.
template <class T>
BOXLOSS_HOST_DEVICE T other_loss(const ClassNumbers<T>& n, const T& x) {
  const LogitParts<T> l = logit_parts(x);
  const T focus = focused(n, l.p, l.miss_one);
  return n.of_others * (n.derives_focus ? focus : hold_constant(focus)) * l.miss_none;
}

template <class T>
BOXLOSS_HOST_DEVICE T other_slope(const ClassNumbers<T>& n, const T& x) {
  const LogitParts<T> l = logit_parts(x);
  const T by_focus = n.derives_focus ? n.gamma * l.rest * l.miss_none : T(0);
  return n.of_others * focused(n, l.p, l.miss_one) * (by_focus + l.p);
}

/// What the score of a query's own class is to be, and the weight of that, both constants of the
/// gradient.
template <class T>
struct WantedScore {
  T score, weight;
};

template <class T>
BOXLOSS_HOST_DEVICE WantedScore<T> wanted_score(const ClassNumbers<T>& n, const LogitParts<T>& l,
                                                const T& quality) {
  if (n.mode == ClassLoss::kVarifocal) return {quality, quality};
  if (n.mode == ClassLoss::kMal) return {focused(n, quality, -log(quality)), T(1)};
  if (n.mode == ClassLoss::kIaBce) {
    const T by_score = exp(-(n.alpha * l.miss_one));
    const T by_quality = n.reads_quality ? exp((T(1) - n.alpha) * log(quality)) : T(1);
    return {hold_constant(at_least(by_score * by_quality, T(0.01))), T(1)};
  }
  return {quality, T(1)};
}

/// Of the query's own class.
template <class T>
BOXLOSS_HOST_DEVICE T own_loss(const ClassNumbers<T>& n, const T& x, const T& quality) {
  const LogitParts<T> l = logit_parts(x);
  if (n.mode == ClassLoss::kFocal) {
    return n.of_own * focused(n, l.rest, l.miss_none) * l.miss_one;
  }
  const WantedScore<T> wanted = wanted_score(n, l, quality);
  return wanted.weight * (wanted.score * l.miss_one + (T(1) - wanted.score) * l.miss_none);
}

template <class T>
BOXLOSS_HOST_DEVICE T own_slope(const ClassNumbers<T>& n, const T& x, const T& quality) {
  const LogitParts<T> l = logit_parts(x);
  if (n.mode == ClassLoss::kFocal) {
    const T by = n.of_own * focused(n, l.rest, l.miss_none);
    const T by_focus = n.derives_focus ? n.gamma * l.p * l.miss_one : T(0);
    return -(by * (by_focus + l.rest));
  }
  const WantedScore<T> wanted = wanted_score(n, l, quality);
  return wanted.weight * (l.p - wanted.score);
}

}  // namespace boxloss
