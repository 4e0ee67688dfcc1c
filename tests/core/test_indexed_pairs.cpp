// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "oracle.hpp"

/// Pairs by index, worked out by hand.
namespace boxloss {
namespace {

Pairing indexed(std::int64_t sets, std::int64_t pairs) {
  return {Pairing::Kind::kIndexed, {}, sets, pairs};
}

/// Two sets of three pairs. One of the first set leads outside; pred 1 is target 1, and no pair has
/// pred 2.
OracleProblem two_sets() {
  OracleProblem problem = one_pair({0, 0, 2, 2, 0, 0, 4, 2, kNan, kNan, kNan, kNan},
                                   {1, 1, 3, 3, 0, 0, 4, 2, 4, 0, 6, 2});
  problem.pairing = indexed(2, 3);
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

TEST_CASE("rows end where the list ends") {
  OracleProblem problem = two_sets();
  const auto losses_of_rows = [&](std::int64_t pred, std::int64_t target) {
    problem.pairing = indexed(1, 1);
    problem.pred_rows = {pred};
    problem.target_rows = {target};
    return oracle_forward(problem).loss;
  };
  require_close(losses_of_rows(0, 2), {kDisjoint});
  require_close(losses_of_rows(1, 1), {0});
  constexpr std::int64_t kFar = std::int64_t{1} << 32;
  for (const std::int64_t row :
       {std::int64_t{3}, std::int64_t{-1}, std::int64_t{-3}, kFar, -kFar,
        std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    REQUIRE(losses_of_rows(0, row) == Boxes{0});
    REQUIRE(losses_of_rows(row, 0) == Boxes{0});
  }
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

TEST_CASE("sets have one normalizer, or one each") {
  const Boxes normalizers = {2, 8};
  OracleProblem problem = two_sets();
  problem.reduction = Reduction::kMean;
  problem.normalizer = {normalizers.data(), DType::kF64};
  REQUIRE(oracle_forward(problem).l1 == Boxes{6. / 2, 12. / 2});
  problem.normalizer_stride = 1;
  REQUIRE(oracle_forward(problem).l1 == Boxes{6. / 2, 12. / 8});
  REQUIRE(oracle_forward(problem).scales == Boxes{1. / 2, 1. / 8});
}

TEST_CASE("a set in which nothing counts is 0, and is divided by 1") {
  OracleProblem problem = two_sets();
  problem.reduction = Reduction::kMean;
  problem.target_rows = {3, 4, -1, 1, 2, 0};
  const OracleForward forward = oracle_forward(problem);
  require_close(forward.loss, {0, (kDisjoint + kShifted) / 3});
  REQUIRE(forward.scales == Boxes{1, 1. / 3});
}

TEST_CASE("sets without pairs are 0, and so is their scale") {
  OracleProblem problem = two_sets();
  problem.pairing = indexed(2, 0);
  problem.pred_rows = problem.target_rows = {};
  problem.reduction = Reduction::kMean;
  const OracleForward forward = oracle_forward(problem);
  REQUIRE(forward.loss == Boxes{0, 0});
  REQUIRE(forward.scales == Boxes{0, 0});
  REQUIRE(oracle_gradients(problem).pred == Boxes(12));
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

TEST_CASE("a side without rows has one box for each pair") {
  OracleProblem problem = two_sets();
  problem.target = {1, 1, 3, 3, 0, 0, 4, 2, kNan, kNan, kNan, kNan,
                    0, 0, 4, 2, 4, 0, 6, 2, 1,    1,    3,    3};
  problem.target_rows = {};
  require_close(oracle_forward(problem).loss, {kShifted, kHalfCovered, 0, 0, kDisjoint, kShifted});
  const Boxes target = oracle_gradients(problem, From::kL1).target;
  REQUIRE(target == Boxes{1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0,  //
                          0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1});
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
