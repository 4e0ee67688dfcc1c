// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/loss.hpp>
#include <limits>

#include "../math/arithmetic.hpp"
#include "../math/host_device.hpp"
#include "ties.hpp"

/// What a formula gets besides the two boxes: eps, which keeps it from dividing by zero, and
/// numbers of its own.
namespace boxloss {

/// Both modes as one expression, max(x + added, floor), so that no loop has to branch on the mode;
/// and eps itself, for formulas that use it in their own way.
template <class T>
struct Eps {
  T added, floor, value;
};

/// eps rounded to T.
template <class T>
Eps<T> make_eps(double eps, EpsMode mode) {
  const T value = static_cast<T>(eps);
  if (mode == EpsMode::kAdd) return {value, -std::numeric_limits<T>::infinity(), value};
  return {T(0), value, value};
}

/// Eps, and the numbers of `LossParameters`. A formula that has none takes an Eps.
template <class T>
struct Constants : Eps<T> {
  T own[kMostLossParameters];
};

/// Those of a problem of losses, rounded to C.
template <class C, class Problem>
Constants<C> constants_of(const Problem& p) {
  Constants<C> constants{make_eps<C>(p.eps, p.eps_mode), {}};
  for (int i = 0; i < kMostLossParameters; ++i) {
    constants.own[i] = static_cast<C>(p.parameters.values[i]);
  }
  return constants;
}

/// The same as numbers of another type.
template <class T, class C>
Constants<T> converted(const Constants<C>& c) {
  return {{T(c.added), T(c.floor), T(c.value)}, {T(c.own[0]), T(c.own[1])}};
}

/// What is below this counts as 0, in formulas that eps does not protect: its reciprocal might
/// overflow.
template <class T>
BOXLOSS_HOST_DEVICE T smallest_divisor() {
  return T(1e-36);
}

/// A divisor with eps, before and after the floor.
template <class T>
struct Guarded {
  T shifted, value;
};

template <class T>
BOXLOSS_HOST_DEVICE Guarded<T> guard(const T& quantity, const Eps<T>& eps) {
  const T shifted = quantity + eps.added;
  return {shifted, at_least(shifted, eps.floor)};
}

/// The derivative of the value with respect to the quantity: 1, ½ and 0 above, at and below the
/// floor.
template <class T>
BOXLOSS_HOST_DEVICE T slope(const Guarded<T>& guarded, const Eps<T>& eps) {
  return T(0.5) * halves_of_min(eps.floor, guarded.shifted);
}

}  // namespace boxloss
