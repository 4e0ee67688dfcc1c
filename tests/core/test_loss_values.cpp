// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "oracle.hpp"

/// Every loss of a few pairs, worked out by hand. Their gradients are the derivatives of these: see
/// test_formula_gradients.cpp.
namespace boxloss {
namespace {

using Values = std::map<Loss, double>;

OracleProblem pair_of(Loss loss, const Boxes& pred, const Boxes& target) {
  OracleProblem problem = one_pair(pred, target);
  problem.loss = loss;
  return problem;
}

/// A value for every loss: one that is added to the list must be worked out here.
void require_values(const Boxes& pred, const Boxes& target, const Values& expected) {
  kLosses.for_each([&](Loss loss) {
    INFO(name_of(loss));
    REQUIRE(expected.count(loss) == 1);
    const double got = oracle_forward(pair_of(loss, pred, target)).loss[0];
    REQUIRE_THAT(got, WithinAbs(expected.at(loss), kRounding));
  });
}

const Boxes kPred = {0, 0, 2, 2};
constexpr double kPi = 3.14159265358979323846;

/// Against a square.
double aspect(double width, double height) {
  const double difference = std::atan(width / height) - kPi / 4;
  return 4 / (kPi * kPi) * difference * difference;
}

TEST_CASE("shifted along the diagonal") {
  // I = 1, U = 7; centres 1 apart on both axes, C is 3 x 3: rho^2 / c^2 = 2 / 18. Lambda = 1.
  const double diou = 6. / 7 + 1. / 9;
  require_values(kPred, {1, 1, 3, 3},
                 {{Loss::kIou, 6. / 7},
                  {Loss::kIouSquared, 48. / 49},
                  {Loss::kIouLog, std::log(7)},
                  {Loss::kGiou, 68. / 63},
                  {Loss::kDiou, diou},
                  {Loss::kCiou, diou},
                  {Loss::kCiouGated, diou},
                  {Loss::kEiou, diou},
                  {Loss::kSiou, 6. / 7 + 1 - std::exp(-1. / 9)},
                  {Loss::kAlphaIou, 342. / 343},
                  {Loss::kNwd, 1 - std::exp(-std::sqrt(2) / 16)},
                  {Loss::kMpdiou, 6. / 7 + 4. / 100},
                  // Sides of 3/2: I = 1/4, U = 17/4.
                  {Loss::kInnerIou, 16. / 17}});
}

TEST_CASE("half covered") {
  // I = 4, U = 8; centres 1 apart in x, C is 4 x 2: rho^2 / c^2 = 1 / 20. Widths are 2 and 4.
  const double diou = 11. / 20, v = aspect(4, 2);
  const double shape = std::pow(1 - std::exp(-1. / 2), 4);
  require_values(kPred, {0, 0, 4, 2},
                 {{Loss::kIou, 1. / 2},
                  {Loss::kIouSquared, 3. / 4},
                  {Loss::kIouLog, std::log(2)},
                  {Loss::kGiou, 1. / 2},
                  {Loss::kDiou, diou},
                  {Loss::kCiou, diou + v * v / (1. / 2 + v)},
                  {Loss::kCiouGated, diou},  // 2 I is not above U
                  {Loss::kEiou, diou + 4. / 16},
                  {Loss::kSiou, 1. / 2 + (1 - std::exp(-2. / 16) + shape) / 2},
                  {Loss::kAlphaIou, 7. / 8},
                  {Loss::kNwd, 1 - std::exp(-std::sqrt(1 + 4. / 4) / 16)},
                  {Loss::kMpdiou, 1. / 2 + 4. / 100},
                  // I = 5/4 x 3/2, U = 9/4 + 9/2 - I.
                  {Loss::kInnerIou, 8. / 13}});
}

TEST_CASE("three quarters covered") {
  // I = 3, U = 4; centres 1/4 apart in y, C is 2 x 2: rho^2 / c^2 = 1 / 128. Heights are 2 and 3/2.
  const double diou = 1. / 4 + 1. / 128, v = aspect(2, 1.5), ciou = diou + v * v / (1. / 4 + v);
  const double shape = std::pow(1 - std::exp(-1. / 4), 4);
  require_values(kPred, {0, 0, 2, 1.5},
                 {{Loss::kIou, 1. / 4},
                  {Loss::kIouSquared, 7. / 16},
                  {Loss::kIouLog, std::log(4. / 3)},
                  {Loss::kGiou, 1. / 4},
                  {Loss::kDiou, diou},
                  {Loss::kCiou, ciou},
                  {Loss::kCiouGated, ciou},
                  {Loss::kEiou, diou + 1. / 16},
                  {Loss::kSiou, 1. / 4 + (1 - std::exp(-2. / 64) + shape) / 2},
                  {Loss::kAlphaIou, 37. / 64},
                  {Loss::kNwd, 1 - std::exp(-std::sqrt(1. / 16 + 1. / 16) / 16)},
                  {Loss::kMpdiou, 1. / 4 + 1. / 400},
                  // I = 3/2 x 17/16, U = 9/4 + 27/16 - I.
                  {Loss::kInnerIou, 8. / 25}});
}

TEST_CASE("equal boxes have no loss") {
  Values zeros;
  kLosses.for_each([&](Loss loss) { zeros[loss] = 0; });
  require_values(kPred, kPred, zeros);
}

TEST_CASE("disjoint boxes") {
  // Centres 4 apart in x, C is 6 x 2: rho^2 / c^2 = 16 / 40.
  OracleProblem problem = pair_of(Loss::kDiou, kPred, {4, 0, 6, 2});
  const auto loss = [&](Loss which) {
    problem.loss = which;
    return oracle_forward(problem).loss[0];
  };
  REQUIRE(loss(Loss::kIou) == 1);
  REQUIRE(loss(Loss::kIouSquared) == 1);
  for (const EpsMode mode : {EpsMode::kClamp, EpsMode::kAdd}) {
    problem.eps_mode = mode;
    REQUIRE(loss(Loss::kIouLog) == std::numeric_limits<double>::infinity());
    REQUIRE(oracle_gradients(problem).pred == Boxes{0, 0, 0, 0});
    REQUIRE(oracle_gradients(problem).target == Boxes{0, 0, 0, 0});
  }
  for (const Loss which : {Loss::kDiou, Loss::kCiou, Loss::kCiouGated, Loss::kEiou}) {
    REQUIRE_THAT(loss(which), WithinAbs(1.4, kRounding));
  }
  REQUIRE_THAT(loss(Loss::kSiou), WithinAbs(1 + (1 - std::exp(-8. / 9)) / 2, kRounding));
  problem.eps = 1. / 4;
  REQUIRE_THAT(loss(Loss::kIouLog), WithinAbs(std::log(4), kRounding));
}

TEST_CASE("eps goes into every denominator") {
  // As half covered, with U' = 17/2, c^2' = 41/2, c_w^2' = 33/2, c_h^2' = 9/2, alpha's + 1/2.
  const double iou = 8. / 17, diou = 1 - iou + 2. / 41, v = aspect(4, 2);
  const Values expected = {{Loss::kIou, 1 - iou},
                           {Loss::kDiou, diou},
                           {Loss::kCiou, diou + v * v / (1 - iou + v + 0.5)},
                           {Loss::kEiou, diou + 8. / 33}};
  for (const auto& [loss, value] : expected) {
    INFO(name_of(loss));
    OracleProblem problem = pair_of(loss, kPred, {0, 0, 4, 2});
    problem.eps = 0.5;
    REQUIRE_THAT(oracle_forward(problem).loss[0], WithinAbs(value, kRounding));
    // Clamped, it is below all of them, and changes nothing.
    problem.eps_mode = EpsMode::kClamp;
    const double clamped = oracle_forward(problem).loss[0];
    problem.eps = 0;
    REQUIRE_THAT(clamped, WithinAbs(oracle_forward(problem).loss[0], kRounding));
  }
  // siou adds eps to the distance of the centres in both modes: s = (3/2, 1/2), Lambda = 3/5.
  OracleProblem siou = pair_of(Loss::kSiou, kPred, {0, 0, 4, 2});
  siou.eps = 0.5;
  siou.eps_mode = EpsMode::kClamp;
  const double distance = 2 - std::exp(-1.4 * 9 / 64) - std::exp(-1.4 / 16);
  const double shape = std::pow(1 - std::exp(-1. / 2), 4);
  REQUIRE_THAT(oracle_forward(siou).loss[0], WithinAbs(1. / 2 + (distance + shape) / 2, kRounding));
}

TEST_CASE("siou is largest for boxes as small as eps") {
  // Of width and of height one box has next to none: S is largest. Both s / c are nearly 1 + eps,
  // and Lambda is 1.
  OracleProblem problem = pair_of(Loss::kSiou, {0, 0, 0, 1. / 1024}, {1 - 1. / 1024, 1, 1, 1});
  const double shape = std::pow(1 - std::exp(-1.), 4);
  const auto loss = [&](double eps) {
    problem.eps = eps;
    return oracle_forward(problem).loss[0];
  };
  REQUIRE_THAT(loss(1), WithinAbs(1 + (1 - std::exp(-4.)) + shape, 1e-3));
  REQUIRE(loss(1) > 2.14);
  REQUIRE(loss(0.01) < 2.03);
}

TEST_CASE("ciou_gated's gate is by the union after eps") {
  // As three quarters covered, with 2 I = 6 above U = 4, and not above U' = 8.
  OracleProblem problem = pair_of(Loss::kCiouGated, kPred, {0, 0, 2, 1.5});
  const auto require_closed = [&](double eps, EpsMode mode, double diagonal) {
    problem.eps = eps;
    problem.eps_mode = mode;
    REQUIRE_THAT(oracle_forward(problem).loss[0],
                 WithinAbs(5. / 8 + 1. / 16 / diagonal, kRounding));
  };
  require_closed(4, EpsMode::kAdd, 12);
  require_closed(8, EpsMode::kClamp, 8);
  // Of U' = 5 it is above.
  const double v = aspect(2, 1.5);
  problem.eps = 1;
  problem.eps_mode = EpsMode::kAdd;
  REQUIRE_THAT(oracle_forward(problem).loss[0],
               WithinAbs(2. / 5 + 1. / 16 / 9 + v * v / (2. / 5 + v), kRounding));
}

TEST_CASE("alpha is a constant to ciou's gradient") {
  // Half covered: the difference to diou is alpha 8 / pi^2 (theta_t - pi / 4) times -theta_p's,
  // whose derivatives by a square's sides of 2 are h / 8 = 1/4 and -1/4.
  const auto pred_gradient = [](Loss loss) {
    return oracle_gradients(pair_of(loss, kPred, {0, 0, 4, 2})).pred;
  };
  const double v = aspect(4, 2), alpha = v / (1. / 2 + v);
  const double by_side = -alpha * 8 / (kPi * kPi) * (std::atan(2) - kPi / 4) / 4;
  const Boxes diou = pred_gradient(Loss::kDiou);
  require_close(pred_gradient(Loss::kCiou),
                {diou[0] - by_side, diou[1] + by_side, diou[2] + by_side, diou[3] - by_side});
  require_close(pred_gradient(Loss::kCiouGated), diou);
}

/// In float32, where it is harder.
void require_finite(Loss loss, const std::vector<std::vector<float>>& boxes, EpsMode mode) {
  std::vector<float> pred, target;  // each box with each
  for (const auto& p : boxes) {
    for (const auto& t : boxes) {
      pred.insert(pred.end(), p.begin(), p.end());
      target.insert(target.end(), t.begin(), t.end());
    }
  }
  const std::size_t count = boxes.size() * boxes.size();
  LossProblem problem;
  problem.loss = loss;
  problem.parameters = conformance::example_parameters(loss);
  problem.pred.data = pred.data();
  problem.target.data = target.data();
  problem.pred.slots = problem.target.slots = static_cast<std::int64_t>(count);
  problem.reduction = Reduction::kNone;
  problem.eps_mode = mode;
  problem.eps = 1e-12;
  const Implementation& native = implementation("cpu/native");
  const float one = 1;
  float scale = 0;
  std::vector<float> values(count), d_pred(4 * count), d_target(4 * count);
  loss_forward(native, problem, {values.data(), &scale, nullptr, nullptr}, {});
  loss_backward(native, problem, {{&one, 0, 0}, {}}, &scale,
                {d_pred.data(), d_target.data(), nullptr}, {});
  for (std::size_t i = 0; i < 4 * count; ++i) {
    const auto &first = boxes[i / 4 / boxes.size()], &second = boxes[i / 4 % boxes.size()];
    INFO(name_of(loss) << ", " << name_of(mode) << ", " << Catch::Detail::stringify(first)
                       << " with " << Catch::Detail::stringify(second) << ", coordinate " << i % 4);
    REQUIRE(std::isfinite(values[i / 4]));
    REQUIRE(std::isfinite(d_pred[i]));
    REQUIRE(std::isfinite(d_target[i]));
  }
}

/// Losses whose gradient of inverted boxes is itself beyond float32.
constexpr Set<Loss> kUnbounded = {Loss::kGiou};

TEST_CASE("no loss is NaN or infinite for degenerate boxes") {
  constexpr float kFar = 1e9f;
  const std::vector<std::vector<float>> inverted = {
      {3, 3, 1, 1}, {kFar, kFar, -kFar, -kFar}, {-kFar, kFar, kFar, -kFar}};
  // Between the last two the angle is 8e-22, whose square is subnormal, and their iou rounds to 1.
  const std::vector<std::vector<float>> others = {{0, 0, 0, 0},
                                                  {1, 1, 1, 3},
                                                  {1, 1, 3, 1},
                                                  {0, 0, 2, 2},
                                                  {-kFar, -kFar, kFar, kFar},
                                                  {kFar, -kFar, kFar, kFar},
                                                  {0, 0, kFar, 0},
                                                  {0, 0, 1e-20f, 1e-20f},
                                                  {kFar, kFar, kFar, kFar},
                                                  {0, 0, 1e8f, 1e-6f},
                                                  {0, 0, 1e8f + 8, 1e-6f}};
  kLosses.for_each([&](Loss loss) {
    std::vector<std::vector<float>> boxes = others;
    if (!kUnbounded.contains(loss)) boxes.insert(boxes.end(), inverted.begin(), inverted.end());
    for (const EpsMode mode : {EpsMode::kAdd, EpsMode::kClamp}) require_finite(loss, boxes, mode);
  });
}

}  // namespace
}  // namespace boxloss
