// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <limits>
#include <vector>

#include "conformance/example_parameters.hpp"

/// The oracle on small problems of doubles.
namespace boxloss {

using Catch::Matchers::WithinAbs;
using Boxes = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// What test_bounded.cpp shows to be enough for the rounding of ordinary boxes, of losses near 1.
constexpr double kRounding = 32 * 0x1p-53;

inline void require_close(const Boxes& got, const Boxes& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    REQUIRE_THAT(got[i], WithinAbs(expected[i], kRounding));
  }
}

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
  LossParameters parameters = {};  ///< none: examples
  std::int64_t normalizer_stride = 0;
  /// With an indexed pairing: lists of all boxes, each with rows unless it is one box for each
  /// pair.
  std::vector<std::int64_t> pred_rows = {}, target_rows = {};

  /// Points into this: it must outlive what it gives.
  LossProblem view() const {
    const auto boxes = [](const std::vector<double>& v) {
      return static_cast<std::int64_t>(v.size() / 4);
    };
    const bool is_ragged = pairing.kind == Pairing::Kind::kOffsets;
    const std::int64_t slots = boxes(pred) / images;
    const std::int64_t target_images = is_ragged ? 1 : images;
    const auto rows = [](const std::vector<std::int64_t>& v) {
      return v.empty() ? ArrayView() : ArrayView{v.data(), DType::kI64};
    };
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
    p.pred.rows = rows(pred_rows);
    p.target.rows = rows(target_rows);
    if (!weight.empty()) p.weight = {weight.data(), DType::kF64};
    p.pairing = pairing;
    p.normalizer = normalizer;
    p.normalizer_stride = normalizer_stride;
    p.reduction = reduction;
    p.eps = eps;
    p.eps_mode = eps_mode;
    p.parameters = parameters.count > 0 ? parameters : conformance::example_parameters(loss);
    return p;
  }
};

/// Against (0, 0, 2, 2): shifted by 1 along the diagonal, twice as wide, further right, the same.
inline OracleProblem four_pairs() {
  OracleProblem problem;
  problem.pred = {0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2};
  problem.target = {1, 1, 3, 3, 0, 0, 4, 2, 4, 0, 6, 2, 0, 0, 2, 2};
  return problem;
}

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
        (i < 4 ? spoilt.pred : spoilt.target)[i % 4] = kNan;
        use(spoilt);
      }
    }
  }
}

struct OracleForward {
  std::vector<double> loss;
  double scale;  ///< of the first set
  std::vector<double> scales, l1, iou;
};

struct OracleGradients {
  std::vector<double> pred, target, weight;
};

/// With l1, where the formats are equal, and iou.
inline OracleForward oracle_forward(const OracleProblem& problem) {
  const LossProblem p = problem.view();
  const bool has_l1 = p.pred.format == p.target.format;
  const auto rows = static_cast<std::size_t>(loss_rows(p));
  const auto sets = static_cast<std::size_t>(loss_sets(p));
  const std::size_t values = p.reduction == Reduction::kNone ? rows : sets;
  OracleForward result{std::vector<double>(values), 0, std::vector<double>(sets),
                       std::vector<double>(has_l1 ? values : 0), std::vector<double>(rows)};
  loss_forward(implementation("cpu/reference"), p,
               {result.loss.data(), result.scales.data(), has_l1 ? result.l1.data() : nullptr,
                result.iou.data()},
               {});
  result.scale = result.scales[0];
  return result;
}

/// What gradients come from.
enum class From { kLoss, kL1, kBoth };

/// With an incoming gradient of 1 for each loss, for each l1, or for both.
inline OracleGradients oracle_gradients(const OracleProblem& problem, From from = From::kLoss) {
  const LossProblem p = problem.view();
  const std::vector<double> scales = oracle_forward(problem).scales;
  const double one = 1;
  GradOutputs grads;
  if (from != From::kL1) grads.loss.data = &one;
  if (from != From::kLoss) grads.l1.data = &one;
  OracleGradients result{std::vector<double>(problem.pred.size()),
                         std::vector<double>(problem.target.size()),
                         std::vector<double>(problem.weight.size())};
  loss_backward(
      implementation("cpu/reference"), p, grads, scales.data(),
      {result.pred.data(), result.target.data(), p.weight.data ? result.weight.data() : nullptr},
      {});
  return result;
}

}  // namespace boxloss
