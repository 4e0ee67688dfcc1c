// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdio>
#include <string>

#include "losses/rotated/formulas.hpp"
#include "rotated_oracle.hpp"
#include "rotated_pairs.hpp"

/// The losses of rotated boxes, each with its oracle.
namespace boxloss {

constexpr double kFloor = 1e-15, kTau = 1;  ///< the standard values

/// With those, and eps added.
template <class T>
Constants<T> rotated_constants(RotatedLoss loss, double eps = 0, double floor = kFloor,
                               double tau = kTau) {
  const bool has_tau = loss == RotatedLoss::kKld || loss == RotatedLoss::kGwd;
  return {make_eps<T>(eps, EpsMode::kAdd),
          {static_cast<T>(has_tau ? tau : floor), static_cast<T>(floor)}};
}

template <class T>
T loss_of(RotatedLoss loss, const RotatedBox<T>& p, const RotatedBox<T>& t, const Constants<T>& c) {
  return with_formula(loss, [&](auto formula) { return formula.loss(p, t, c); });
}

template <class T>
RotatedPairGradient<T> derivatives_of(RotatedLoss loss, const RotatedBox<T>& p,
                                      const RotatedBox<T>& t, const Constants<T>& c) {
  return with_formula(loss, [&](auto formula) { return formula.derivatives(p, t, c); });
}

inline rotated_oracle::Real oracle_loss(RotatedLoss loss, const rotated_oracle::Box& p,
                                        const rotated_oracle::Box& t, double floor = kFloor,
                                        double tau = kTau) {
  namespace oracle = rotated_oracle;
  switch (loss) {
    case RotatedLoss::kIou: return 1 - oracle::iou(p, t);
    case RotatedLoss::kGiou: return 1 - oracle::giou(p, t);
    case RotatedLoss::kProbiou: return oracle::probiou_loss(p, t, floor);
    case RotatedLoss::kKld: return oracle::kld_loss(p, t, tau, floor);
    case RotatedLoss::kGwd: return oracle::gwd_loss(p, t, tau, floor);
    default: return oracle::kfiou_loss(p, t, floor);
  }
}

template <class T, class F>
RotatedBox<T> as(const RotatedBox<F>& b) {
  return {T(b.cx), T(b.cy), T(b.w), T(b.h), T(b.angle)};
}

template <class T>
std::array<T, 10> numbers_of(const RotatedBox<T>& p, const RotatedBox<T>& t) {
  return {p.cx, p.cy, p.w, p.h, p.angle, t.cx, t.cy, t.w, t.h, t.angle};
}

template <class T>
std::array<T, 10> numbers_of(const RotatedPairGradient<T>& d) {
  return numbers_of(d.pred, d.target);
}

inline std::string text_of(const RotatedPair& pair) {
  char text[400];
  const FloatBox &p = pair.pred, &t = pair.target;
  std::snprintf(text, sizeof text,
                "(%.9g, %.9g, %.9g, %.9g, %.9g) and (%.9g, %.9g, %.9g, %.9g, %.9g)",
                static_cast<double>(p.cx), static_cast<double>(p.cy), static_cast<double>(p.w),
                static_cast<double>(p.h), static_cast<double>(p.angle), static_cast<double>(t.cx),
                static_cast<double>(t.cy), static_cast<double>(t.w), static_cast<double>(t.h),
                static_cast<double>(t.angle));
  return text;
}

}  // namespace boxloss
