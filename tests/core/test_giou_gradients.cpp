// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <utility>

#include "oracle.hpp"

/// Gradients worked out by hand. For loss = 2 - I / U - U / C, which is what eps = 0 leaves of it,
/// the derivatives are
///   by U: I / U^2 - 1 / C    by I, which U contains with a minus: -1 / U - (by U)    by C: U / C^2
namespace boxloss {
namespace {

OracleProblem one_pair(const Boxes& pred, const Boxes& target) {
  OracleProblem problem;
  problem.pred = pred;
  problem.target = target;
  return problem;
}

void require_gradients(const OracleProblem& problem, const Boxes& pred, const Boxes& target) {
  const OracleGradients gradients = oracle_gradients(problem);
  require_close(gradients.pred, pred);
  require_close(gradients.target, target);
}

// (0, 0, 2, 2) and (1, 1, 3, 3): I = 1, U = 7, C = 9, so by U = 1/49 - 1/9, by I = -1/7 - by U and
// by C = 7/81. Both axes are alike; sides of the boxes are 2, of the intersection 1, of C 3:
//   pred.x2    2 by U + by I          = 1/49 - 1/9 - 1/7    = -103/441
//   pred.x1    -(2 by U + 3 by C)     = -(2/49 - 2/9 + 7/27) = -103/1323
// and target's are their mirror images.
constexpr double kInner = 103.0 / 441, kOuter = 103.0 / 1323;

TEST_CASE("gradients of two overlapping boxes") {
  require_gradients(one_pair({0, 0, 2, 2}, {1, 1, 3, 3}), {-kOuter, -kOuter, -kInner, -kInner},
                    {kInner, kInner, kOuter, kOuter});
}

TEST_CASE("gradients in each operand's format") {
  OracleProblem problem = one_pair({1, 1, 2, 2}, {1, 1, 2, 2});
  problem.pred_format = BoxFormat::kCxcywh;  // d cx = d x1 + d x2, d w = (d x2 - d x1) / 2
  problem.target_format = BoxFormat::kXywh;  // d x = d x1 + d x2, d w = d x2
  const double centre = -kOuter - kInner, size = (kOuter - kInner) / 2;
  const double corner = kInner + kOuter;
  require_gradients(problem, {centre, centre, size, size}, {corner, corner, kOuter, kOuter});
  // And the formats the other way round, which mirrors the pair.
  std::swap(problem.pred, problem.target);
  std::swap(problem.pred_format, problem.target_format);
  require_gradients(problem, {corner, corner, kOuter, kOuter}, {centre, centre, size, size});
}

TEST_CASE("weight, mean and the incoming gradient multiply") {
  OracleProblem problem = one_pair({0, 0, 2, 2, 0, 0, 2, 2}, {1, 1, 3, 3, 0, 0, 2, 2});
  problem.weight = {6, 1};
  problem.reduction = Reduction::kMean;
  const double by_pair = 6.0 / 2;
  const OracleGradients gradients = oracle_gradients(problem);
  require_close({gradients.pred.begin(), gradients.pred.begin() + 4},
                {-by_pair * kOuter, -by_pair * kOuter, -by_pair * kInner, -by_pair * kInner});
  // The losses are 68/63 and 0, and two pairs count.
  require_close(gradients.weight, {34.0 / 63, 0});
}

TEST_CASE("an incoming gradient is read by its strides") {
  const OracleProblem problem = one_pair({0, 0, 2, 2, 0, 0, 2, 2}, {1, 1, 3, 3, 1, 1, 3, 3});
  const Boxes upstream = {2, -1, -1, 5};
  const double scale = 1;
  Boxes pred(8);
  loss_backward(implementation("cpu/reference"), problem.view(), {{upstream.data(), 0, 3}, {}},
                &scale, {pred.data(), nullptr, nullptr}, {});
  require_close(pred, {-2 * kOuter, -2 * kOuter, -2 * kInner, -2 * kInner, -5 * kOuter, -5 * kOuter,
                       -5 * kInner, -5 * kInner});
}

TEST_CASE("ties are shared half and half") {
  // I = 4, U = 8, C = 8: by U = 1/16 - 1/8 = -1/16, by I = -1/8 + 1/16 = -1/16, by C = 1/8.
  // In x, all heights are 2: by a box's side -1/8, by I's -1/8, by C's 1/4. x1 ties, x2 does not:
  //   x1 of both  -(-1/8 - 1/16 + 1/8) = 1/16
  //   pred.x2     -1/8 - 1/8           = -1/4      target.x2  -1/8 + 1/4 = 1/8
  // In y, widths are 2 (pred), 4 (target), 2 (I) and 4 (C): -1/8, -1/4, -1/8 and 1/2. Both tie:
  //   pred.y2     -1/8 - 1/16 + 1/4 = 1/16, y1 minus that
  //   target.y2   -1/4 - 1/16 + 1/4 = -1/16, y1 minus that
  require_gradients(one_pair({0, 0, 2, 2}, {0, 0, 4, 2}), {1. / 16, -1. / 16, -1. / 4, 1. / 16},
                    {1. / 16, 1. / 16, 1. / 8, -1. / 16});
}

TEST_CASE("identical boxes have no gradient: the halves cancel") {
  // I = U = C = 4: by U = 0, by I = -1/4 and by C = 1/4 meet in every coordinate, halved.
  require_gradients(one_pair({0, 0, 2, 2}, {0, 0, 2, 2}), {0, 0, 0, 0}, {0, 0, 0, 0});
}

TEST_CASE("boxes that only touch have no gradient by their intersection") {
  // I = 0, U = 3, C = 4: by U = -1/4, by C = 3/16; by I would be -1/3 + 1/4, if it counted.
  //   pred.x1  -(-1/4 + 2 * 3/16) = -1/8      target.x1  2/4
  //   pred.x2  -1/4                           target.x2  -2/4 + 2 * 3/16 = -1/8
  //   both y1  -(-1/4 + 3/16) = 1/16, for C's width of 2 is shared
  //   pred.y2  -1/4                           target.y2  -1/4 + 2 * 3/16 = 1/8
  require_gradients(one_pair({0, 0, 1, 1}, {1, 0, 2, 2}), {-1. / 8, 1. / 16, -1. / 4, -1. / 4},
                    {1. / 2, 1. / 16, -1. / 8, 1. / 8});
  // The same with the axes exchanged.
  require_gradients(one_pair({0, 0, 1, 1}, {0, 1, 2, 2}), {1. / 16, -1. / 8, -1. / 4, -1. / 4},
                    {1. / 16, 1. / 2, 1. / 8, -1. / 8});
}

TEST_CASE("clamp's slope is 1 above eps, a half at eps, 0 below") {
  // I = 0, U = 2, C = 3 and the heights are 1, so with the clamped U', C' and their slopes:
  //   pred.x2 = by U = -(slope of U') / C'
  //   pred.x1 = -(by U + by C),  by C = (slope of C') U' / C'^2
  OracleProblem problem = one_pair({0, 0, 1, 1}, {2, 0, 3, 1});
  problem.eps_mode = EpsMode::kClamp;
  const auto pred_x = [&](double eps) {
    problem.eps = eps;
    const Boxes pred = oracle_gradients(problem).pred;
    return Boxes{pred[0], pred[2]};
  };
  require_close(pred_x(1), {1. / 3 - 2. / 9, -1. / 3});
  require_close(pred_x(2), {1. / 6 - 2. / 9, -1. / 6});  // U == eps
  require_close(pred_x(2.5), {-2.5 / 9, 0});             // U < eps < C
  require_close(pred_x(3), {-(3. / 9) / 2, 0});          // C == eps
  require_close(pred_x(4), {0, 0});                      // both below
}

TEST_CASE("excluded pairs have no gradient, whatever they hold") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::uint8_t> mask = {0, 1};
  OracleProblem problem = one_pair({nan, nan, nan, nan, 0, 0, 2, 2}, {1, 1, nan, 3, 1, 1, 3, 3});
  problem.weight = {nan, 1};
  problem.pairing = {Pairing::Kind::kMask, {mask.data(), DType::kU8}};
  const OracleGradients gradients = oracle_gradients(problem);
  require_close(gradients.pred, {0, 0, 0, 0, -kOuter, -kOuter, -kInner, -kInner});
  require_close(gradients.target, {0, 0, 0, 0, kInner, kInner, kOuter, kOuter});
  require_close(gradients.weight, {0, 68. / 63});
}

TEST_CASE("rows and slots without a partner have no gradient") {
  const std::vector<std::int32_t> offsets = {1, 2};
  OracleProblem problem = one_pair({0, 0, 2, 2, 5, 5, 6, 6}, {9, 9, 9, 9, 1, 1, 3, 3});
  problem.pairing = {Pairing::Kind::kOffsets, {offsets.data(), DType::kI32}};
  require_gradients(problem, {-kOuter, -kOuter, -kInner, -kInner, 0, 0, 0, 0},
                    {0, 0, 0, 0, kInner, kInner, kOuter, kOuter});
}

TEST_CASE("NaN in a counted pair is in all its gradients") {
  const OracleProblem pair = one_pair({0, 0, 2, 2}, {1, 1, 3, 3});
  with_nan_at_each_coordinate(pair, [](const OracleProblem& problem) {
    const OracleGradients gradients = oracle_gradients(problem);
    for (const double d : gradients.pred) REQUIRE(std::isnan(d));
    for (const double d : gradients.target) REQUIRE(std::isnan(d));
  });
}

}  // namespace
}  // namespace boxloss
