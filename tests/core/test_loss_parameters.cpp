// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "oracle.hpp"

/// Numbers of a loss' own: which there are, how they are completed and refused, and that the losses
/// and the matcher's cost are computed with them.
namespace boxloss {
namespace {

using Catch::Matchers::Message;

TEST_CASE("parameters that are not given have their standard values, or must be given") {
  REQUIRE(complete_parameters(Loss::kGiou, {}).count == 0);
  const LossParameters standard = complete_parameters(Loss::kAlphaIou, {});
  REQUIRE(standard.count == 1);
  REQUIRE(standard.values[0] == 3);
  const LossParameters given = complete_parameters(Loss::kMpdiou, {2, {640, 480}});
  REQUIRE(given.values[0] == 640);
  REQUIRE(given.values[1] == 480);
}

TEST_CASE("parameters are refused by their names") {
  const struct {
    Loss loss;
    LossParameters given;
    const char* message;
  } rows[] = {
      {Loss::kGiou, {1, {3}}, "parameters has 1 numbers; 'giou' has 0: none"},
      {Loss::kAlphaIou, {2, {3, 3}}, "parameters has 2 numbers; 'alpha_iou' has 1: alpha"},
      {Loss::kMpdiou,
       {1, {3}},
       "parameters has 1 numbers; 'mpdiou' has 2: image_width, image_height"},
      {Loss::kMpdiou, {}, "image_width is missing; 'mpdiou' needs image_width, image_height"},
      {Loss::kNwd, {1, {0}}, "constant is 0; it must be from 1e-6 to 1e6"},
      {Loss::kNwd, {1, {kNan}}, "constant is nan; it must be from 1e-6 to 1e6"},
      {Loss::kMpdiou, {2, {1, 1e7}}, "image_height is 1e+07; it must be from 1e-6 to 1e6"},
      {Loss::kInnerIou, {1, {-1}}, "ratio is -1; it must be from 1e-6 to 1e6"}};
  for (const auto& row : rows) {
    REQUIRE_THROWS_MATCHES(complete_parameters(row.loss, row.given), InvalidArgument,
                           Message(row.message));
    LossProblem problem;
    problem.loss = row.loss;
    problem.parameters = row.given;
    REQUIRE_THROWS_MATCHES(check_options(problem), InvalidArgument, Message(row.message));
    CostProblem cost;
    cost.loss = row.loss;
    cost.parameters = row.given;
    cost.offsets.dtype = DType::kI64;
    REQUIRE_THROWS_MATCHES(check_options(cost), InvalidArgument, Message(row.message));
  }
}

TEST_CASE("a loss is computed with its parameters, forward and backward") {
  OracleProblem squared = one_pair({0, 0, 2, 2}, {1, 1, 3, 3});
  squared.loss = Loss::kIouSquared;
  OracleProblem power = squared;
  power.loss = Loss::kAlphaIou;
  power.parameters = {1, {2}};
  REQUIRE_THAT(oracle_forward(power).loss[0],
               WithinAbs(oracle_forward(squared).loss[0], kRounding));
  require_close(oracle_gradients(power).pred, oracle_gradients(squared).pred);
}

TEST_CASE("implementations get the standard values") {
  const double pred[] = {0, 0, 2, 2}, target[] = {1, 1, 3, 3};
  const std::int64_t offsets[] = {0, 1};
  CostProblem cost;
  cost.loss = Loss::kAlphaIou;
  cost.pred = {pred, DType::kF64, BoxFormat::kXyxy, 1, 1};
  cost.target = {target, DType::kF64, BoxFormat::kXyxy, 1, 1};
  cost.offsets = {offsets, DType::kI64};
  cost.iou_weight = 1;
  cost.l1_weight = 0;
  float entry = 0;
  matching_cost(oracle(), cost, &entry, {});
  REQUIRE_THAT(entry, WithinAbs(-1. / 343, 1e-9));  // iou 1/7, stored as a float32
}

}  // namespace
}  // namespace boxloss
