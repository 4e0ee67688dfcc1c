// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <limits>
#include <vector>

#include "conformance/example_parameters.hpp"

/// The oracle on small problems, mostly of doubles: what is worked out by hand is compared with it,
/// and by the conformance suite it is with all other implementations.
namespace boxloss {

using Catch::Matchers::WithinAbs;
using Boxes = std::vector<double>;  ///< or other numbers

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

inline const Implementation& oracle() { return implementation("cpu/reference"); }

inline Boxes joined(const std::vector<Boxes>& parts) {
  Boxes all;
  for (const Boxes& each : parts) all.insert(all.end(), each.begin(), each.end());
  return all;
}

/// None of no numbers.
inline ArrayView view_of(const Boxes& numbers) {
  return numbers.empty() ? ArrayView{} : ArrayView{numbers.data(), DType::kF64};
}

/// Of logits' losses. The gradient is that of the losses' sum.
template <class P, class Problem, class Outputs, class Gradient>
void require_losses(P p, std::size_t logits,
                    void (*forward)(const Implementation&, const Problem&, const Outputs&,
                                    const Execution&),
                    void (*backward)(const Implementation&, const P&, const Gradient&,
                                     const Execution&),
                    const Boxes& loss, const Boxes& gradient, const Boxes& scale) {
  INFO(name_of(p.mode));
  Boxes losses(loss.size(), kNan), scales(scale.size(), kNan), slopes(logits, kNan);
  forward(oracle(), p, {losses.data(), scales.data()}, {});
  require_close(losses, loss);
  require_close(scales, scale);
  const Boxes ones(loss.size(), 1);
  p.grad = ones.data();
  p.scale = scales.data();
  backward(oracle(), p, {slopes.data()}, {});
  require_close(slopes, gradient);
}

struct OracleProblem {
  Boxes pred, target;  ///< four values a box
  Boxes weight = {};
  BoxFormat pred_format = BoxFormat::kXyxy;
  BoxFormat target_format = BoxFormat::kXyxy;
  Reduction reduction = Reduction::kNone;
  double eps = 0;
  EpsMode eps_mode = EpsMode::kAdd;
  std::int64_t images = 1;
  Pairing pairing = {};
  ArrayView normalizer = {};
  Loss loss = Loss::kGiou;
  LossParameters parameters = {};                              ///< none: examples
  std::vector<std::int64_t> pred_rows = {}, target_rows = {};  ///< of an indexed pairing

  /// Points into this: it must outlive what it gives.
  LossProblem view() const {
    const auto boxes_of = [](const Boxes& boxes, BoxFormat format, std::int64_t of_images,
                             const std::vector<std::int64_t>& rows) {
      const std::int64_t slots = static_cast<std::int64_t>(boxes.size()) / 4 / of_images;
      BoxView view = {boxes.data(), DType::kF64, format, of_images, slots, 4 * slots, 4};
      if (!rows.empty()) view.rows = {rows.data(), DType::kI64};
      return view;
    };
    const bool is_list = pairing.kind == Pairing::Kind::kOffsets;
    LossProblem p;
    p.loss = loss;
    p.pred = boxes_of(pred, pred_format, images, pred_rows);
    p.target = boxes_of(target, target_format, is_list ? 1 : images, target_rows);
    p.weight = view_of(weight);
    p.pairing = pairing;
    p.normalizer = normalizer;
    p.reduction = reduction;
    p.eps = eps;
    p.eps_mode = eps_mode;
    p.parameters = parameters.count > 0 ? parameters : conformance::example_parameters(loss);
    return p;
  }
};

inline OracleProblem one_pair(const Boxes& pred, const Boxes& target) {
  OracleProblem problem;
  problem.pred = pred;
  problem.target = target;
  return problem;
}

/// Against (0, 0, 2, 2): shifted by 1 along the diagonal, twice as wide, further right, the same.
inline OracleProblem four_pairs() {
  return one_pair({0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2},
                  {1, 1, 3, 3, 0, 0, 4, 2, 4, 0, 6, 2, 0, 0, 2, 2});
}

// Their GIoU with eps 0. With areas A, intersection I, union U and enclosing area C it is
// 1 - (I / U - (C - U) / C), and pred's area is 4:
//   (1, 1, 3, 3)  A = 4, I = 1, U = 7, C = 9    1 - (1/7 - 2/9) = 68/63
//   (0, 0, 4, 2)  A = 8, I = 4, U = 8, C = 8    1 - (1/2 - 0)   = 1/2
//   (4, 0, 6, 2)  A = 4, I = 0, U = 8, C = 12   1 - (0 - 1/3)   = 4/3
//   (0, 0, 2, 2)  A = 4, I = 4, U = 4, C = 4    1 - (1 - 0)     = 0
constexpr double kShifted = 68.0 / 63, kHalfCovered = 0.5, kDisjoint = 4.0 / 3, kSame = 0;

// The gradient of the first. Of 2 - I / U - U / C, which is what eps = 0 leaves, the derivatives
// are
//   by U: I / U^2 - 1 / C    by I, which U contains with a minus: -1 / U - (by U)    by C: U / C^2
// so by U = 1/49 - 1/9 and by C = 7/81. Both axes are alike; sides of the boxes are 2, of the
// intersection 1, of C 3:
//   pred.x2    2 by U + by I          = 1/49 - 1/9 - 1/7    = -103/441
//   pred.x1    -(2 by U + 3 by C)     = -(2/49 - 2/9 + 7/27) = -103/1323
// and target's are their mirror images.
constexpr double kInner = 103.0 / 441, kOuter = 103.0 / 1323;

struct OracleForward {
  Boxes loss;
  double scale;  ///< of the first set
  Boxes scales, l1, iou;
};

struct OracleGradients {
  Boxes pred, target, weight;
};

/// With l1, where the formats are equal, and iou.
inline OracleForward oracle_forward(const OracleProblem& problem) {
  const LossProblem p = problem.view();
  const bool has_l1 = p.pred.format == p.target.format;
  const auto rows = static_cast<std::size_t>(loss_rows(p));
  const auto sets = static_cast<std::size_t>(loss_sets(p));
  const std::size_t values = p.reduction == Reduction::kNone ? rows : sets;
  OracleForward result{Boxes(values), 0, Boxes(sets), Boxes(has_l1 ? values : 0), Boxes(rows)};
  loss_forward(oracle(), p,
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
  const Boxes scales = oracle_forward(problem).scales;
  const double one = 1;
  GradOutputs grads;
  if (from != From::kL1) grads.loss = {&one, 0, 0};
  if (from != From::kLoss) grads.l1 = {&one, 0, 0};
  OracleGradients result{Boxes(problem.pred.size()), Boxes(problem.target.size()),
                         Boxes(problem.weight.size())};
  loss_backward(
      oracle(), p, grads, scales.data(),
      {result.pred.data(), result.target.data(), p.weight.data ? result.weight.data() : nullptr},
      {});
  return result;
}

}  // namespace boxloss
