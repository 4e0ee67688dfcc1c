// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../math/functions.hpp"
#include "distance.hpp"

namespace boxloss {

/// Normalized Wasserstein distance: Wang et al., "A Normalized Gaussian Wasserstein Distance for
/// Tiny Object Detection", 2021. The squared distance of two boxes as Gaussians is that of their
/// centres and a quarter of their sides' squared differences, which is half of that of their
/// corners:
///   loss = 1 - exp(-sqrt(m') / constant), m = (d_1^2 + d_2^2) / 2.
/// Where m' is 0 there is no gradient.
struct Nwd {
  static constexpr bool kUsesEnds = true;
  static constexpr LossParameter kParameters[] = {{"constant", 0}};

  template <class T>
  static BOXLOSS_HOST_DEVICE T loss(const Box<T>& p, const Box<T>& t, const Constants<T>& c) {
    return T(1) - similarity(root(guard(T(0.5) * corner_distance(p, t).square, c)), c);
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE Derivatives<T> derivatives(const Box<T>& p, const Box<T>& t,
                                                        const Constants<T>& c) {
    CornerDistance<T> corners = corner_distance(p, t);
    Guarded<T> m = guard(T(0.5) * corners.square, c);
    const T r = root(m), similar = similarity(r, c);
    const auto is_apart = m.value > smallest_divisor<T>();
    const T per_root = select(is_apart, reciprocal(select(is_apart, r, T(1))), T(0));
    // The root by an offset is the offset over two roots.
    const T by_root = similar * reciprocal(c.own[0]) * slope(m, c);
    Derivatives<T> d = {T(1) - similar, {}, {}};
    add_corners(corners, T(0.5) * (by_root * per_root), d);
    return d;
  }

 private:
  /// As it is where it counts as 0, so that NaN stays.
  template <class T>
  static BOXLOSS_HOST_DEVICE T root(const Guarded<T>& m) {
    const auto is_apart = m.value > smallest_divisor<T>();
    return select(is_apart, sqrt(select(is_apart, m.value, T(1))), m.value);
  }

  template <class T>
  static BOXLOSS_HOST_DEVICE T similarity(const T& root, const Constants<T>& c) {
    return exp(-(root * reciprocal(c.own[0])));
  }
};

}  // namespace boxloss
