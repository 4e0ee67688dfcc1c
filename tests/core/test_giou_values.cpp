// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "oracle.hpp"

/// GIoU worked out by hand: eps, weights, reductions, which slots count, and gradients, as kInner
/// and kOuter are; that these are the loss' derivatives, test_formula_gradients.cpp shows.
namespace boxloss {
namespace {

using Kind = Pairing::Kind;

void require_losses(const OracleProblem& problem, const Boxes& expected) {
  require_close(oracle_forward(problem).loss, expected);
}

TEST_CASE("losses of four pairs") {
  require_losses(four_pairs(), {kShifted, kHalfCovered, kDisjoint, kSame});
}

TEST_CASE("every format is the same box") {
  OracleProblem problem = four_pairs();
  problem.pred = {1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2};
  problem.pred_format = BoxFormat::kCxcywh;
  problem.target = {1, 1, 2, 2, 0, 0, 4, 2, 4, 0, 2, 2, 0, 0, 2, 2};
  problem.target_format = BoxFormat::kXywh;
  require_losses(problem, {kShifted, kHalfCovered, kDisjoint, kSame});
}

TEST_CASE("eps is added to both areas") {
  OracleProblem problem = four_pairs();
  problem.eps = 1;
  // 1/8 - 2/10 = -3/40; 4/9 - 0; 0 - 4/13; 4/5 - 0
  require_losses(problem, {43.0 / 40, 5.0 / 9, 17.0 / 13, 1.0 / 5});
}

TEST_CASE("eps bounds both areas from below") {
  OracleProblem problem = four_pairs();
  problem.eps_mode = EpsMode::kClamp;
  problem.eps = 8;
  // U' and C' are (8, 9), (8, 8), (8, 12), (8, 8):  1/8 - 1/9 = 1/72; 4/8; -4/12; 4/8
  require_losses(problem, {71.0 / 72, 1.0 / 2, 4.0 / 3, 1.0 / 2});
  problem.eps = 1;
  require_losses(problem, {kShifted, kHalfCovered, kDisjoint, kSame});
}

TEST_CASE("inverted boxes keep their sign") {
  // A_p = (0 - 2)(2 - 0) = -4, A_t = 1; the intersection's width is min(0, 1) - max(2, 0) < 0, so
  // I = 0, U = -3; C = (max(0, 1) - min(2, 0)) * 2 = 2; loss = 1 + (2 - -3) / 2 = 7/2.
  require_losses(one_pair({2, 0, 0, 2}, {0, 0, 1, 1}), {3.5});
}

TEST_CASE("two points in one place have no GIoU without eps, and a loss of 1 with it") {
  OracleProblem problem = one_pair({1, 1, 1, 1}, {1, 1, 1, 1});
  REQUIRE(std::isnan(oracle_forward(problem).loss[0]));
  problem.eps = 1e-7;
  require_losses(problem, {1});
}

void require_nan_of_first_pair(const OracleProblem& problem) {
  const OracleForward forward = oracle_forward(problem);
  const OracleGradients gradients = oracle_gradients(problem);
  for (std::size_t i = 0; i < 16; ++i) {
    for (const double number : {forward.loss[i / 4], forward.l1[i / 4], forward.iou[i / 4],
                                gradients.pred[i], gradients.target[i]}) {
      REQUIRE((i < 4 ? std::isnan(number) : std::isfinite(number)));
    }
  }
}

TEST_CASE("NaN in a counted pair is in all that comes of it, and of no other") {
  for (const EpsMode mode : {EpsMode::kAdd, EpsMode::kClamp}) {
    for (const double eps : {0.0, 1e-7, 1.0}) {  // divisions by 0 would hide that NaN was lost
      for (std::size_t i = 0; i < 8; ++i) {
        OracleProblem problem = four_pairs();
        problem.eps_mode = mode;
        problem.eps = eps;
        (i < 4 ? problem.pred : problem.target)[i % 4] = kNan;
        require_nan_of_first_pair(problem);
      }
    }
  }
}

TEST_CASE("weight multiplies each loss, even NaN by 0") {
  OracleProblem problem = four_pairs();
  problem.weight = {2, 0.5, 3, 5};
  require_losses(problem, {2 * kShifted, 0.5 * kHalfCovered, 3 * kDisjoint, 0});
  problem.weight[0] = 0;
  problem.pred[0] = kNan;
  REQUIRE(std::isnan(oracle_forward(problem).loss[0]));
}

TEST_CASE("reductions, and a normalizer that divides in place of the count") {
  OracleProblem problem = four_pairs();
  const double sum = kShifted + kHalfCovered + kDisjoint;
  const auto require_sum_times = [&](double scale) {
    require_losses(problem, {scale * sum});
    REQUIRE(oracle_forward(problem).scale == scale);
  };
  problem.reduction = Reduction::kSum;
  require_sum_times(1);
  problem.reduction = Reduction::kMean;
  require_sum_times(1. / 4);
  const std::int64_t normalizer = 8;
  problem.normalizer = {&normalizer, DType::kI64};
  require_sum_times(1. / 8);
}

TEST_CASE("a mean is over the pairs that count, and over 1 if none does") {
  std::vector<std::uint8_t> mask = {1, 0, 1, 0};
  OracleProblem problem = four_pairs();
  problem.reduction = Reduction::kMean;
  problem.pairing = {Kind::kMask, {mask.data(), DType::kU8}};
  require_losses(problem, {(kShifted + kDisjoint) / 2});
  const auto require_zero_of_none = [&] {
    mask = {0, 0, 0, 0};
    const OracleForward forward = oracle_forward(problem);
    REQUIRE(forward.loss == Boxes{0});
    REQUIRE(forward.l1 == Boxes{0});
    REQUIRE(forward.scale == 1);
  };
  require_zero_of_none();
  for (const double normalizer : {0.0, kNan}) {
    problem.normalizer = {&normalizer, DType::kF64};
    require_zero_of_none();
    mask = {1, 0, 0, 0};
    REQUIRE_FALSE(std::isfinite(oracle_forward(problem).loss[0]));
  }
}

TEST_CASE("no boxes at all") {
  OracleProblem problem;
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMean}) {
    problem.reduction = reduction;
    require_losses(problem, {0});
    REQUIRE(oracle_forward(problem).scale == 0);
  }
}

// --- Which pairs count

/// As two images of two slots.
void require_paired(Kind kind, const std::vector<std::int64_t>& indices, const Boxes& expected) {
  OracleProblem problem = four_pairs();
  problem.images = 2;
  problem.pairing = {kind, {indices.data(), DType::kI64}};
  require_losses(problem, expected);
}

TEST_CASE("lengths count the first slots of each image, clamped") {
  require_paired(Kind::kLengths, {1, 2}, {kShifted, 0, kDisjoint, kSame});
  require_paired(Kind::kLengths, {2, 0}, {kShifted, kHalfCovered, 0, 0});
  require_paired(Kind::kLengths, {-3, 9}, {0, 0, kDisjoint, kSame});
}

TEST_CASE("offsets cut one list of targets into images") {
  // Row 0 belongs to nobody, row 1 to image 0, rows 2 and 3 to image 1.
  require_paired(Kind::kOffsets, {1, 2, 4}, {0, kHalfCovered, kDisjoint, kSame});
  // Image 0 has two slots for its three rows; the third has no pred.
  require_paired(Kind::kOffsets, {0, 3, 4}, {kShifted, kHalfCovered, 0, kSame});
  require_paired(Kind::kOffsets, {-7, 1, 99}, {kShifted, kHalfCovered, kDisjoint, 0});
}

TEST_CASE("zero-padded leaves out targets of four zeros, of either sign") {
  OracleProblem problem = four_pairs();
  problem.pairing.kind = Kind::kZeroPadded;
  problem.target = {1, 1, 3, 3, 0, -0.0, 0, -0.0, 4, 0, 6, 2, 0, 0, 0, 0};
  problem.pred[4] = kNan;
  require_losses(problem, {kShifted, 0, kDisjoint, 0});
}

// --- Pairs by index

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

// --- Gradients

void require_gradients(const OracleProblem& problem, const Boxes& pred, const Boxes& target) {
  const OracleGradients gradients = oracle_gradients(problem);
  require_close(gradients.pred, pred);
  require_close(gradients.target, target);
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

/// Bounds and duals share a tie by functions of their own: this is core's.
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

}  // namespace
}  // namespace boxloss
