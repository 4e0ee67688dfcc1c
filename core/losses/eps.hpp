// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/loss.hpp>
#include <limits>

#include "../math/arithmetic.hpp"
#include "../math/host_device.hpp"
#include "ties.hpp"

/// Eps, which keeps a formula from dividing by zero; a formula's only input besides the two boxes.
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
