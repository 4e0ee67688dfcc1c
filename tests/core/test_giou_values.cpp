// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "oracle.hpp"

/// Losses worked out by hand. With areas A, intersection I, union U and enclosing area C:
///   loss = 1 - (I / U - (C - U) / C)
namespace boxloss {
namespace {

// All of four_pairs() are against pred (0, 0, 2, 2), whose area is 4, with eps 0:
//   (1, 1, 3, 3)  A = 4, I = 1, U = 7, C = 9    1 - (1/7 - 2/9) = 68/63
//   (0, 0, 4, 2)  A = 8, I = 4, U = 8, C = 8    1 - (1/2 - 0)   = 1/2
//   (4, 0, 6, 2)  A = 4, I = 0, U = 8, C = 12   1 - (0 - 1/3)   = 4/3
//   (0, 0, 2, 2)  A = 4, I = 4, U = 4, C = 4    1 - (1 - 0)     = 0
constexpr double kShifted = 68.0 / 63, kHalfCovered = 0.5, kDisjoint = 4.0 / 3, kSame = 0;

void require_losses(const OracleProblem& problem, const Boxes& expected) {
  require_close(oracle_forward(problem).loss, expected);
}

OracleProblem two_images() {
  OracleProblem problem = four_pairs();
  problem.images = 2;
  return problem;
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

  // And the formats the other way round.
  problem.pred = {0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2};
  problem.pred_format = BoxFormat::kXywh;
  problem.target = {2, 2, 2, 2, 2, 1, 4, 2, 5, 1, 2, 2, 1, 1, 2, 2};
  problem.target_format = BoxFormat::kCxcywh;
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
  OracleProblem problem;
  // A_p = (0 - 2)(2 - 0) = -4, A_t = 1; the intersection's width is min(0, 1) - max(2, 0) < 0, so
  // I = 0, U = -3; C = (max(0, 1) - min(2, 0)) * 2 = 2; loss = 1 + (2 - -3) / 2 = 7/2.
  problem.pred = {2, 0, 0, 2};
  problem.target = {0, 0, 1, 1};
  require_losses(problem, {3.5});
}

TEST_CASE("two points in one place have no GIoU without eps, and a loss of 1 with it") {
  OracleProblem problem;
  problem.pred = {1, 1, 1, 1};
  problem.target = {1, 1, 1, 1};
  REQUIRE(std::isnan(oracle_forward(problem).loss[0]));
  problem.eps = 1e-7;
  require_losses(problem, {1});
}

TEST_CASE("NaN in a counted pair is in its loss and in no other") {
  with_nan_at_each_coordinate(four_pairs(), [](const OracleProblem& problem) {
    const Boxes losses = oracle_forward(problem).loss;
    REQUIRE(std::isnan(losses[0]));
    for (std::size_t i = 1; i < 4; ++i) REQUIRE(std::isfinite(losses[i]));
  });
}

TEST_CASE("weight multiplies each loss, even NaN by 0") {
  OracleProblem problem = four_pairs();
  problem.weight = {2, 0.5, 3, 5};
  require_losses(problem, {2 * kShifted, 0.5 * kHalfCovered, 3 * kDisjoint, 0});
  problem.weight[0] = 0;
  problem.pred[0] = kNan;
  REQUIRE(std::isnan(oracle_forward(problem).loss[0]));
}

TEST_CASE("reductions") {
  OracleProblem problem = four_pairs();
  const double sum = kShifted + kHalfCovered + kDisjoint;
  problem.reduction = Reduction::kSum;
  require_losses(problem, {sum});
  REQUIRE(oracle_forward(problem).scale == 1);
  problem.reduction = Reduction::kMean;
  require_losses(problem, {sum / 4});
  REQUIRE(oracle_forward(problem).scale == 0.25);
}

template <class T>
void require_normalized(DType dtype) {
  const T normalizer = 8;
  OracleProblem problem = four_pairs();
  problem.reduction = Reduction::kMean;
  problem.normalizer = {&normalizer, dtype};
  require_losses(problem, {(kShifted + kHalfCovered + kDisjoint) / 8});
  REQUIRE(oracle_forward(problem).scale == 0.125);
}

TEST_CASE("a normalizer divides in place of the count") {
  require_normalized<double>(DType::kF64);
  require_normalized<float>(DType::kF32);
  require_normalized<std::int64_t>(DType::kI64);
  require_normalized<std::int32_t>(DType::kI32);
}

TEST_CASE("where nothing counts, no normalizer spoils the loss") {
  for (const double normalizer : {0.0, kNan}) {
    std::vector<std::uint8_t> mask = {0, 0, 0, 0};
    OracleProblem problem = four_pairs();
    problem.reduction = Reduction::kMean;
    problem.normalizer = {&normalizer, DType::kF64};
    problem.pairing = {Pairing::Kind::kMask, {mask.data(), DType::kU8}};
    const OracleForward forward = oracle_forward(problem);
    REQUIRE(forward.loss == Boxes{0});
    REQUIRE(forward.l1 == Boxes{0});
    REQUIRE(forward.scale == 1);
    // A pair that counts is divided by what was given.
    mask = {1, 0, 0, 0};
    REQUIRE(!std::isfinite(oracle_forward(problem).loss[0]));
  }
}

TEST_CASE("a mean is over the pairs that count, and over 1 if none does") {
  std::vector<std::uint8_t> mask = {1, 0, 1, 0};
  OracleProblem problem = four_pairs();
  problem.reduction = Reduction::kMean;
  problem.pairing = {Pairing::Kind::kMask, {mask.data(), DType::kU8}};
  require_losses(problem, {(kShifted + kDisjoint) / 2});
  mask = {0, 0, 0, 0};
  require_losses(problem, {0});
  REQUIRE(oracle_forward(problem).scale == 1);
}

TEST_CASE("no boxes at all") {
  OracleProblem problem;
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMean}) {
    problem.reduction = reduction;
    require_losses(problem, {0});
    REQUIRE(oracle_forward(problem).scale == 0);
  }
}

TEST_CASE("dense counts everything") {
  require_losses(two_images(), {kShifted, kHalfCovered, kDisjoint, kSame});
}

TEST_CASE("zero-padded leaves out targets of four zeros, of either sign") {
  OracleProblem problem = two_images();
  problem.pairing.kind = Pairing::Kind::kZeroPadded;
  problem.target = {1, 1, 3, 3, 0, -0.0, 0, -0.0, 4, 0, 6, 2, 0, 0, 0, 0};
  problem.pred[4] = kNan;
  require_losses(problem, {kShifted, 0, kDisjoint, 0});
}

template <class T>
void require_lengths(DType dtype, const std::vector<T>& lengths, const Boxes& expected) {
  OracleProblem problem = two_images();
  problem.pairing = {Pairing::Kind::kLengths, {lengths.data(), dtype}};
  require_losses(problem, expected);
}

TEST_CASE("lengths count the first slots of each image, clamped") {
  require_lengths<std::int32_t>(DType::kI32, {1, 2}, {kShifted, 0, kDisjoint, kSame});
  require_lengths<std::int64_t>(DType::kI64, {2, 0}, {kShifted, kHalfCovered, 0, 0});
  require_lengths<std::int32_t>(DType::kI32, {-3, 9}, {0, 0, kDisjoint, kSame});
}

TEST_CASE("a mask counts where it is true") {
  const std::vector<std::uint8_t> mask = {0, 1, 1, 0};
  OracleProblem problem = two_images();
  problem.pred[0] = kNan;
  problem.pairing = {Pairing::Kind::kMask, {mask.data(), DType::kU8}};
  require_losses(problem, {0, kHalfCovered, kDisjoint, 0});
}

template <class T>
void require_offsets(DType dtype, const std::vector<T>& offsets, const Boxes& expected) {
  OracleProblem problem = two_images();
  problem.pairing = {Pairing::Kind::kOffsets, {offsets.data(), dtype}};
  require_losses(problem, expected);
}

TEST_CASE("offsets cut one list of targets into images") {
  // Row 0 belongs to nobody, row 1 to image 0, rows 2 and 3 to image 1.
  require_offsets<std::int32_t>(DType::kI32, {1, 2, 4}, {0, kHalfCovered, kDisjoint, kSame});
  // Image 0 has two slots for its three rows; the third has no pred.
  require_offsets<std::int64_t>(DType::kI64, {0, 3, 4}, {kShifted, kHalfCovered, 0, kSame});
  require_offsets<std::int64_t>(DType::kI64, {-7, 1, 99}, {kShifted, kHalfCovered, kDisjoint, 0});
}

TEST_CASE("offsets pair with their own image's preds") {
  const std::vector<std::int32_t> offsets = {0, 1, 2};
  OracleProblem problem;
  problem.images = 2;
  problem.pred = {0, 0, 2, 2, kNan, kNan, kNan, kNan, 4, 0, 6, 2, kNan, kNan, kNan, kNan};
  problem.target = {4, 0, 6, 2, 4, 0, 6, 2};
  problem.pairing = {Pairing::Kind::kOffsets, {offsets.data(), DType::kI32}};
  require_losses(problem, {kDisjoint, kSame});
}

}  // namespace
}  // namespace boxloss
