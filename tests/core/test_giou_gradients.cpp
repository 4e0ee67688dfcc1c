// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "oracle.hpp"

/// Gradients worked out by hand, as kInner and kOuter are. Those of the other losses are the
/// derivatives of their own: see test_formula_gradients.cpp.
namespace boxloss {
namespace {

void require_gradients(const OracleProblem& problem, const Boxes& pred, const Boxes& target) {
  const OracleGradients gradients = oracle_gradients(problem);
  require_close(gradients.pred, pred);
  require_close(gradients.target, target);
}

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
}

TEST_CASE("weight and mean multiply, and equal boxes have no gradient") {
  OracleProblem problem = one_pair({0, 0, 2, 2, 0, 0, 2, 2}, {1, 1, 3, 3, 0, 0, 2, 2});
  problem.weight = {6, 1};
  problem.reduction = Reduction::kMean;
  const OracleGradients gradients = oracle_gradients(problem);
  require_close(gradients.pred, {-3 * kOuter, -3 * kOuter, -3 * kInner, -3 * kInner, 0, 0, 0, 0});
  require_close(gradients.weight, {kShifted / 2, 0});
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

TEST_CASE("boxes that only touch have no gradient by their intersection") {
  // I = 0, U = 3, C = 4: by U = -1/4, by C = 3/16; by I would be -1/3 + 1/4, if it counted.
  //   pred.x1  -(-1/4 + 2 * 3/16) = -1/8      target.x1  2/4
  //   pred.x2  -1/4                           target.x2  -2/4 + 2 * 3/16 = -1/8
  //   both y1  -(-1/4 + 3/16) = 1/16, for C's width of 2 is shared
  //   pred.y2  -1/4                           target.y2  -1/4 + 2 * 3/16 = 1/8
  require_gradients(one_pair({0, 0, 1, 1}, {1, 0, 2, 2}), {-1. / 8, 1. / 16, -1. / 4, -1. / 4},
                    {1. / 2, 1. / 16, -1. / 8, 1. / 8});
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

}  // namespace
}  // namespace boxloss
