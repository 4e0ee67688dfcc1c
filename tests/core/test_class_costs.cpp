// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "oracle.hpp"

/// A matcher's costs, worked out by hand.
namespace boxloss {
namespace {

using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Costs up to 32, in float32, of which each term has been rounded.
constexpr double kTolerance = 1e-5;

/// Two images with two queries each; the first owns one column, the second two.
///
/// As corners: (0, 0, 2, 2) and (1, 1, 3, 3) meet (0, 0, 2, 2); then (0, 0, 2, 2) and (4, 0, 6, 2)
/// meet (0, 0, 4, 2) and (4, 0, 6, 2).
struct Example {
  std::vector<float> pred = {1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 2, 2, 5, 1, 2, 2};
  std::vector<float> target = {1, 1, 2, 2, 2, 1, 4, 2, 5, 1, 2, 2};
  std::vector<std::int32_t> offsets = {0, 1, 3};
  std::vector<std::int64_t> labels = {2, 0, 1};
  /// exp(logits): of three classes for each query.
  std::vector<double> odds = {1, 2, 5, 1, 1, 2, 2, 1, 1, 5, 2, 1};
  std::vector<double> given = {};
  CostProblem problem;

  Example() {
    problem.loss = Loss::kGiou;
    problem.pred.format = problem.target.format = BoxFormat::kCxcywh;
  }

  static Example with(ClassTerm term) {
    Example example;
    example.problem.class_term = term;
    return example;
  }

  /// What the class alone costs.
  static Example of_class(ClassTerm term) {
    Example example = with(term);
    example.problem.iou_weight = example.problem.l1_weight = 0;
    return example;
  }

  /// (layers, queries, T), one row after the other.
  std::vector<float> cost() const {
    CostProblem p = problem;
    const auto images = static_cast<std::int64_t>(offsets.size()) - 1;
    const std::int64_t queries = 2, blocks = p.layers * images;
    const auto columns = static_cast<std::int64_t>(target.size() / 4);
    p.pred = {pred.data(), DType::kF32, p.pred.format, blocks, queries, 4 * queries, 4};
    p.target = {target.data(), DType::kF32, p.target.format, 1, columns, 4 * columns, 4};
    p.offsets = {offsets.data(), DType::kI32};
    const bool is_softmax = p.class_term == ClassTerm::kSoftmax;
    std::vector<double> scores;
    for (std::size_t i = 0; i < odds.size(); i += 3) {
      const double sum = is_softmax ? odds[i] + odds[i + 1] + odds[i + 2] : 1;
      for (std::size_t k = i; k < i + 3; ++k) scores.push_back(std::log(odds[k] / sum));
    }
    if (p.class_term == ClassTerm::kGiven) {
      p.scores = {given.data(), DType::kF64, queries * columns, columns};
    } else if (p.class_term != ClassTerm::kNone) {
      p.scores = {scores.data(), DType::kF64, queries * 3, 3};
      p.classes = 3;
      p.labels = {labels.data(), DType::kI64};
    }
    std::vector<float> cost(static_cast<std::size_t>(p.layers * queries * columns), 99.0f);
    matching_cost(implementation("cpu/reference"), p, cost.data(), {});
    return cost;
  }
};

void require_costs(const Example& example, const Numbers& expected) {
  const std::vector<float> cost = example.cost();
  REQUIRE(cost.size() == expected.size());
  for (std::size_t i = 0; i < cost.size(); ++i) {
    INFO("entry " << i);
    if (std::isfinite(expected[i])) {
      REQUIRE_THAT(cost[i], WithinAbs(expected[i], kTolerance));
    } else {
      REQUIRE((std::isnan(expected[i]) ? std::isnan(cost[i]) : cost[i] == expected[i]));
    }
  }
}

// Rows are queries, columns boxes of the ground truth. Generalised IoU is 1, 1/2, -1/3; -5/63,
// 0, 1. The sum of |pred - target| is 0, 3, 4; 2, 5, 0.
const Numbers kBoxes = {-2, -1 + 15, 2. / 3 + 20, 10. / 63 + 10, 25, -2};

Numbers sum(Numbers a, const Numbers& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

TEST_CASE("boxes cost DETR's weights of their generalised IoU and their distance") {
  require_costs(Example(), kBoxes);
  Example weighted;
  weighted.problem.iou_weight = -3;
  weighted.problem.l1_weight = 0.5;
  require_costs(weighted, {3, 3. / 2 + 1.5, -1 + 2, -15. / 63 + 1, 2.5, 3});
}

TEST_CASE("each loss costs itself less 1, with its eps") {
  Example iou;
  iou.problem.loss = Loss::kIou;
  iou.problem.iou_weight = 1;
  iou.problem.l1_weight = 0;
  require_costs(iou, {-1, -1. / 2, 0, -1. / 7, 0, -1});
  Example logarithm = iou;  // -log 0 is infinite
  logarithm.problem.loss = Loss::kIouLog;
  require_costs(logarithm, {-1, std::log(2.) - 1, kInfinity, std::log(7.) - 1, kInfinity, -1});
  logarithm.problem.nonfinite = 1000;
  require_costs(logarithm, {-1, std::log(2.) - 1, 1000, std::log(7.) - 1, 1000, -1});
  iou.problem.eps = 1;
  require_costs(iou, {-4. / 5, -4. / 9, 0, -1. / 8, 0, -4. / 5});
  iou.problem.eps = 8;
  iou.problem.eps_mode = EpsMode::kClamp;
  require_costs(iou, {-1. / 2, -1. / 2, 0, -1. / 8, 0, -1. / 2});
}

const Numbers kSoftmax = {-5. / 8, -2. / 4, -1. / 4, -2. / 4, -5. / 8, -2. / 8};
const Numbers kSigmoid = {-5. / 6, -2. / 3, -1. / 2, -2. / 3, -5. / 6, -2. / 3};

TEST_CASE("softmax costs the label's probability among all classes, sigmoid its own") {
  require_costs(Example::of_class(ClassTerm::kSoftmax), kSoftmax);
  require_costs(Example::with(ClassTerm::kSoftmax), sum(kBoxes, kSoftmax));
  require_costs(Example::of_class(ClassTerm::kSigmoid), kSigmoid);
  require_costs(Example::with(ClassTerm::kSigmoid), sum(kBoxes, kSigmoid));
}

/// Deformable DETR's, of a probability.
double focal(double p, double alpha, double gamma) {
  const double this_one = alpha * std::pow(1 - p, gamma) * -std::log(p + 1e-8);
  return this_one - (1 - alpha) * std::pow(p, gamma) * -std::log(1 - p + 1e-8);
}

Numbers focal_costs(double alpha, double gamma) {
  Numbers costs;
  for (const double p : {5. / 6, 2. / 3, 1. / 2, 2. / 3, 5. / 6, 2. / 3}) {
    costs.push_back(focal(p, alpha, gamma));
  }
  return costs;
}

TEST_CASE("focal costs what the focal loss tells classes apart by") {
  // 1/4 (1/2)^2 log 2 - 3/4 (1/2)^2 log 2
  REQUIRE_THAT(focal(0.5, 0.25, 2), WithinAbs(-std::log(2) / 8, 1e-7));
  require_costs(Example::of_class(ClassTerm::kFocal), focal_costs(0.25, 2));
  require_costs(Example::with(ClassTerm::kFocal), sum(kBoxes, focal_costs(0.25, 2)));
  for (const double gamma : {0., 1., 1.5, 3.}) {
    Example example = Example::of_class(ClassTerm::kFocal);
    example.problem.focal_alpha = 0.7;
    example.problem.focal_gamma = gamma;
    require_costs(example, focal_costs(0.7, gamma));
  }
}

TEST_CASE("logits however large cost something finite") {
  Example example = Example::of_class(ClassTerm::kFocal);
  // Of the label's class: certain, impossible, neither.
  example.odds = {1, 1, 1e300, 1, 1, 1e-300, 1e300, 1, 1, 1e-300, 1, 1};
  const double certain = -0.75 * -std::log(1e-8), impossible = 0.25 * -std::log(1e-8);
  const double neither = focal(0.5, 0.25, 2);
  require_costs(example, {certain, certain, neither, impossible, impossible, neither});
  example.problem.class_term = ClassTerm::kSigmoid;
  require_costs(example, {-1, -1, -0.5, 0, 0, -0.5});
}

TEST_CASE("a matrix that is given is weighted and added") {
  Example example = Example::with(ClassTerm::kGiven);
  example.given = {1, 2, 3, -4, -5, -6};
  require_costs(example, sum(kBoxes, {1, 2, 3, -4, -5, -6}));
  example.problem.class_weight = 0.5;
  require_costs(example, sum(kBoxes, {0.5, 1, 1.5, -2, -2.5, -3}));
}

TEST_CASE("each layer has its own queries, and the same columns") {
  Example example = Example::with(ClassTerm::kSoftmax);
  // The second layer's are the first's the other way round.
  example.problem.layers = 2;
  example.pred.insert(example.pred.end(), {2, 2, 2, 2, 1, 1, 2, 2, 5, 1, 2, 2, 1, 1, 2, 2});
  example.odds.insert(example.odds.end(), {1, 1, 2, 1, 2, 5, 5, 2, 1, 2, 1, 1});
  const Numbers first = sum(kBoxes, kSoftmax);
  Numbers both = first;
  both.insert(both.end(), first.begin() + 3, first.end());
  both.insert(both.end(), first.begin(), first.begin() + 3);
  require_costs(example, both);
}

TEST_CASE("what is not finite shows, unless it is replaced") {
  Example example = Example::with(ClassTerm::kGiven);
  example.given = {kNan, 0, 0, kInfinity, -kInfinity, 1e39};  // the last is more than float32 holds
  example.pred[8] = static_cast<float>(kNan);                 // the second image's first query
  Numbers expected = {kNan, kNan, kNan, kInfinity, -kInfinity, kInfinity};
  require_costs(example, expected);
  example.problem.nonfinite = -8;
  for (double& entry : expected) entry = std::isfinite(entry) ? entry : -8;
  require_costs(example, expected);
}

}  // namespace
}  // namespace boxloss
