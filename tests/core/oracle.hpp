// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/boxloss.hpp>
#include <limits>
#include <vector>

/// The oracle on small problems of doubles.
namespace boxloss {

struct OracleProblem {
  std::vector<double> pred, target;  ///< four values a box
  std::vector<double> weight = {};
  BoxFormat pred_format = BoxFormat::kXyxy;
  BoxFormat target_format = BoxFormat::kXyxy;
  Reduction reduction = Reduction::kNone;
  double eps = 0;
  EpsMode eps_mode = EpsMode::kAdd;
  std::int64_t images = 1;
  Pairing pairing = {};
  ArrayView normalizer = {};
  Loss loss = Loss::kGiou;

  /// Points into this: it must outlive what it gives.
  LossProblem view() const {
    const auto boxes = [](const std::vector<double>& v) {
      return static_cast<std::int64_t>(v.size() / 4);
    };
    const bool is_ragged = pairing.kind == Pairing::Kind::kOffsets;
    const std::int64_t slots = boxes(pred) / images;
    const std::int64_t target_images = is_ragged ? 1 : images;
    const std::int64_t target_slots = boxes(target) / target_images;
    LossProblem p;
    p.loss = loss;
    p.pred = {pred.data(), DType::kF64, pred_format, images, slots, 4 * slots, 4};
    p.target = {target.data(),
                DType::kF64,
                target_format,
                target_images,
                target_slots,
                4 * target_slots,
                4};
    p.weight = {weight.empty() ? nullptr : weight.data(), DType::kF64};
    p.pairing = pairing;
    p.normalizer = normalizer;
    p.reduction = reduction;
    p.eps = eps;
    p.eps_mode = eps_mode;
    return p;
  }
};

/// Problems with NaN in one coordinate after the other, with eps in all its ways. With eps 0 alone,
/// divisions by it would hide that NaN was lost.
template <class Use>
void with_nan_at_each_coordinate(const OracleProblem& problem, const Use& use) {
  for (const EpsMode mode : {EpsMode::kAdd, EpsMode::kClamp}) {
    for (const double eps : {0.0, 1e-7, 1.0}) {
      for (std::size_t i = 0; i < 8; ++i) {
        OracleProblem spoilt = problem;
        spoilt.eps_mode = mode;
        spoilt.eps = eps;
        (i < 4 ? spoilt.pred : spoilt.target)[i % 4] = std::numeric_limits<double>::quiet_NaN();
        use(spoilt);
      }
    }
  }
}

struct OracleForward {
  std::vector<double> loss;
  double scale;
};

struct OracleGradients {
  std::vector<double> pred, target, weight;
};

inline OracleForward oracle_forward(const OracleProblem& problem) {
  const LossProblem p = problem.view();
  const bool is_reduced = p.reduction != Reduction::kNone;
  OracleForward result{std::vector<double>(is_reduced ? 1 : loss_rows(p)), 0};
  loss_forward(implementation("cpu/reference"), p, {result.loss.data(), &result.scale}, {});
  return result;
}

/// With an incoming gradient of 1 for each loss.
inline OracleGradients oracle_gradients(const OracleProblem& problem) {
  const LossProblem p = problem.view();
  const double scale = oracle_forward(problem).scale;
  const double one = 1;
  OracleGradients result{std::vector<double>(problem.pred.size()),
                         std::vector<double>(problem.target.size()),
                         std::vector<double>(problem.weight.size())};
  loss_backward(
      implementation("cpu/reference"), p, {&one, 0, 0}, &scale,
      {result.pred.data(), result.target.data(), p.weight.data ? result.weight.data() : nullptr},
      {});
  return result;
}

/// What test_bounded.cpp shows to be enough for the rounding of ordinary boxes, of losses near 1.
constexpr double kRounding = 32 * 0x1p-53;

}  // namespace boxloss
