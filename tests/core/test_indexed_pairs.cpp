// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "oracle.hpp"

/// Pairs by index, worked out by hand.
namespace boxloss {
namespace {

/// Two sets of three pairs. One of the first set leads outside; pred 1 is target 1, and no pair has
/// pred 2.
OracleProblem two_sets() {
  OracleProblem problem = one_pair({0, 0, 2, 2, 0, 0, 4, 2, kNan, kNan, kNan, kNan},
                                   {1, 1, 3, 3, 0, 0, 4, 2, 4, 0, 6, 2});
  problem.pairing = {Pairing::Kind::kIndexed, {}, 2, 3};
  problem.pred_rows = {0, 0, -1, 1, 0, 0};
  problem.target_rows = {0, 1, 2, 1, 2, 0};
  return problem;
}

TEST_CASE("each pair reads its rows, and one that leads outside does not count") {
  const OracleForward forward = oracle_forward(two_sets());
  require_close(forward.loss, {kShifted, kHalfCovered, 0, 0, kDisjoint, kShifted});
  REQUIRE(forward.l1 == Boxes{4, 2, 0, 0, 8, 4});
  require_close(forward.iou, {1. / 7, 1. / 2, 0, 1, 0, 1. / 7});
  REQUIRE(forward.scales == Boxes{1, 1});
}

TEST_CASE("each set has a mean of its own") {
  OracleProblem problem = two_sets();
  problem.reduction = Reduction::kSum;
  require_close(oracle_forward(problem).loss, {kShifted + kHalfCovered, kDisjoint + kShifted});
  problem.reduction = Reduction::kMean;
  const OracleForward forward = oracle_forward(problem);
  require_close(forward.loss, {(kShifted + kHalfCovered) / 2, (kDisjoint + kShifted) / 3});
  require_close(forward.l1, {6. / 2, 12. / 3});
  REQUIRE(forward.scales == Boxes{1. / 2, 1. / 3});
}

TEST_CASE("a set in which nothing counts is 0, and is divided by 1") {
  OracleProblem problem = two_sets();
  problem.reduction = Reduction::kMean;
  problem.target_rows = {3, 4, -1, 1, 2, 0};
  const OracleForward forward = oracle_forward(problem);
  require_close(forward.loss, {0, (kDisjoint + kShifted) / 3});
  REQUIRE(forward.scales == Boxes{1, 1. / 3});
}

TEST_CASE("gradients of a row's pairs add up") {
  OracleProblem problem = two_sets();
  problem.reduction = Reduction::kMean;
  const OracleGradients gradients = oracle_gradients(problem, From::kL1);
  // pred 0 is in the pairs (0, 1) / 2 of the first set and (2, 0) / 3 of the second:
  //   x1  -1/2 - 1/3 - 1/3    y1, y2  -1/2 - 1/3    x2  -1/2 - 1/2 - 1/3 - 1/3
  require_close(gradients.pred, {-7. / 6, -5. / 6, -5. / 3, -5. / 6, 0, 0, 0, 0, 0, 0, 0, 0});
  require_close(gradients.target,
                {5. / 6, 5. / 6, 5. / 6, 5. / 6, 0, 0, 1. / 2, 0, 1. / 3, 0, 1. / 3, 0});
}

TEST_CASE("each set has its own incoming gradient") {
  OracleProblem problem = two_sets();
  problem.reduction = Reduction::kSum;
  const Boxes by_set = {1, kNan, -1}, scales = {1, 1};
  Boxes target(12);
  loss_backward(implementation("cpu/reference"), problem.view(), {{}, {by_set.data(), 2, 0}},
                scales.data(), {nullptr, target.data(), nullptr}, {});
  // Target 0 is once in each set.
  REQUIRE(target == Boxes{0, 0, 0, 0, 0, 0, 1, 0, -1, 0, -1, 0});
}

}  // namespace
}  // namespace boxloss
