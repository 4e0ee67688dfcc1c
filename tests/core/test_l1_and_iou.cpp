// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "losses/l1.hpp"
#include "oracle.hpp"

/// What comes beside the loss, worked out by hand.
namespace boxloss {
namespace {

/// The boxes of four_pairs(), whose centres move by half as much as the far corner of one that
/// grows.
OracleProblem four_pairs_by_centre() {
  OracleProblem problem = one_pair({1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2},
                                   {2, 2, 2, 2, 2, 1, 4, 2, 5, 1, 2, 2, 1, 1, 2, 2});
  problem.pred_format = problem.target_format = BoxFormat::kCxcywh;
  return problem;
}

OracleProblem weighted_mean() {
  OracleProblem problem = four_pairs();
  problem.weight = {2, 0.5, 3, 5};
  problem.reduction = Reduction::kMean;
  return problem;
}

const Boxes kL1 = {4, 2, 8, 0}, kIou = {1. / 7, 1. / 2, 0, 1};

TEST_CASE("l1 is of the values as they are given") {
  REQUIRE(oracle_forward(four_pairs()).l1 == kL1);
  REQUIRE(oracle_forward(four_pairs_by_centre()).l1 == Boxes{2, 3, 4, 0});
}

TEST_CASE("l1's derivatives are signs: 0 at a tie, NaN where a value is") {
  const Box<double> signs = l1_signs<double>({3, 1, 2, kNan}, {1, 3, 2, 4});
  REQUIRE(signs.x1 == 1);
  REQUIRE(signs.y1 == -1);
  REQUIRE(signs.x2 == 0);
  REQUIRE(std::isnan(signs.y2));
}

TEST_CASE("l1 is weighted and reduced as the loss is") {
  OracleProblem problem = weighted_mean();
  REQUIRE(oracle_forward(problem).l1 == Boxes{33. / 4});
  problem.reduction = Reduction::kSum;
  REQUIRE(oracle_forward(problem).l1 == Boxes{33});
  problem.reduction = Reduction::kNone;
  REQUIRE(oracle_forward(problem).l1 == Boxes{8, 1, 24, 0});
}

TEST_CASE("iou is of the corners, and neither weighted nor reduced") {
  for (const OracleProblem& problem : {four_pairs(), four_pairs_by_centre(), weighted_mean()}) {
    require_close(oracle_forward(problem).iou, kIou);
  }
}

TEST_CASE("iou divides by the union after eps, whatever the loss") {
  OracleProblem problem = four_pairs();
  problem.loss = Loss::kDiou;
  problem.eps = 1;
  require_close(oracle_forward(problem).iou, {1. / 8, 4. / 9, 0, 4. / 5});
  problem.eps_mode = EpsMode::kClamp;
  problem.eps = 8;
  require_close(oracle_forward(problem).iou, {1. / 8, 1. / 2, 0, 1. / 2});
}

TEST_CASE("l1's gradients are signs, 0 at a tie") {
  const OracleGradients gradients = oracle_gradients(four_pairs(), From::kL1);
  REQUIRE(gradients.pred == Boxes{-1, -1, -1, -1, 0, 0, -1, 0, -1, 0, -1, 0, 0, 0, 0, 0});
  REQUIRE(gradients.target == Boxes{1, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0});
  // By centre and size, not by corners.
  const OracleGradients others = oracle_gradients(four_pairs_by_centre(), From::kL1);
  REQUIRE(others.pred == Boxes{-1, -1, 0, 0, -1, 0, -1, 0, -1, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("each incoming gradient has its own strides") {
  OracleProblem problem = four_pairs();
  const auto d_pred = [&](const GradView& loss, const GradView& l1) {
    const double scale = 1;
    Boxes pred(16);
    loss_backward(implementation("cpu/reference"), problem.view(), {loss, l1}, &scale,
                  {pred.data(), nullptr, nullptr}, {});
    return pred;
  };
  const Boxes by_loss = {0, 0, 0, 0}, by_l1 = {2, kNan, -1, kNan, 3, kNan, 5};
  REQUIRE(d_pred({by_loss.data(), 0, 1}, {by_l1.data(), 0, 2}) ==
          Boxes{-2, -2, -2, -2, 0, 0, 1, 0, -3, 0, -3, 0, 0, 0, 0, 0});

  problem.images = 2;
  const Boxes ones = {1, 1, 1, 1}, with_gap = {1, 1, kNan, 1, 1};
  const Boxes from_both = oracle_gradients(problem, From::kBoth).pred;
  REQUIRE(d_pred({with_gap.data(), 3, 1}, {ones.data(), 2, 1}) == from_both);
  REQUIRE(d_pred({ones.data(), 2, 1}, {with_gap.data(), 3, 1}) == from_both);
}

/// Core makes one image of several for the oracle, too, so the conformance suite sees such an error
/// only where rounding gives it away.
TEST_CASE("boxes of either side have gaps between images") {
  OracleProblem problem = four_pairs();
  problem.images = 2;
  for (BoxView LossProblem::* const side : {&LossProblem::pred, &LossProblem::target}) {
    LossProblem p = problem.view();
    BoxView& view = p.*side;
    const auto* const data = static_cast<const double*>(view.data);
    Boxes boxes(data, data + 16);
    boxes.insert(boxes.begin() + 8, 4, kNan);
    view.data = boxes.data();
    view.image_stride = 12;
    Boxes loss(4), l1(4);
    double scale = 0;
    loss_forward(implementation("cpu/reference"), p, {loss.data(), &scale, l1.data(), nullptr}, {});
    REQUIRE(l1 == kL1);
  }
}

}  // namespace
}  // namespace boxloss
