// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "oracle.hpp"

/// Class losses and their gradients worked out by hand.
namespace boxloss {
namespace {

using Numbers = Boxes;

/// Logits whose sigmoids are 1/4, 1/2 and 3/4; and the cross-entropies there, which are
/// -log p towards 1 and -log(1 - p) towards 0.
const double kThree = std::log(3.0), kLn2 = std::log(2.0), kLn4 = std::log(4.0),
             kLn43 = std::log(4.0 / 3);

/// One image of queries with two classes each, and one box of class 0, which the first query has.
struct Example {
  ClassLoss mode;
  Numbers logits;
  std::optional<double> alpha = {}, gamma = {};
  Numbers quality = {}, query_quality = {}, weight = {}, normalizer = {};
  std::vector<std::int64_t> target_index = {0}, labels = {0};
  std::int64_t sets = 1, classes = 2;
  Reduction reduction = Reduction::kNone;
  double no_object_weight = 1;
  bool is_transposed = false;  ///< the logits and their gradient: queries are neighbours

  void require(const Numbers& loss, const Numbers& gradient, const Numbers& scale = {1}) const {
    ClassLossGradProblem p;
    p.mode = mode;
    p.sets = sets;
    p.images = 1;
    p.queries = static_cast<std::int64_t>(target_index.size()) / sets;
    p.classes = classes;
    p.targets = static_cast<std::int64_t>(labels.size());
    const std::int64_t of_set = p.queries * classes;
    p.logits = {logits.data(), DType::kF64, of_set, of_set, classes, 1};
    if (is_transposed) p.logits = {logits.data(), DType::kF64, of_set, of_set, 1, p.queries};
    p.target_index = {target_index.data(), DType::kI64};
    p.labels = {labels.data(), DType::kI64};
    p.quality = view_of(quality);
    p.query_quality = view_of(query_quality);
    p.weight = view_of(weight);
    p.normalizer = view_of(normalizer);
    p.normalizer_stride = normalizer.size() > 1 ? 1 : 0;
    p.alpha = alpha;
    p.gamma = gamma;
    p.no_object_weight = no_object_weight;
    p.reduction = reduction;
    p.is_transposed = is_transposed;
    require_losses(p, logits.size(), class_loss, class_loss_backward, loss, gradient, scale);
  }
};

/// A query's own class at `x`, another at 0.
Example at(ClassLoss mode, double x, const Numbers& quality = {}) {
  Example example = {mode, {x, 0}};
  example.quality = quality;
  return example;
}

Example with(Example example, double alpha, double gamma) {
  example.alpha = alpha;
  example.gamma = gamma;
  return example;
}

TEST_CASE("class losses and gradients of one query") {
  // alpha (1 - p)^gamma (-log p), and its derivative by the logit,
  // -alpha (1 - p)^gamma (gamma p (-log p) + 1 - p); of another class by symmetry.
  const Example focal = at(ClassLoss::kFocal, kThree);
  focal.require({kLn43 / 64 + 3 * kLn2 / 16}, {-(1.5 * kLn43 + 0.25) / 64, 3 * (kLn2 + 0.5) / 16});
  with(focal, -1, 1)
      .require({kLn43 / 4 + kLn2 / 2}, {-(0.75 * kLn43 + 0.25) / 4, (kLn2 / 2 + 0.5) / 2});
  with(focal, 0.5, 0).require({kLn43 / 2 + kLn2 / 2}, {-0.125, 0.25});
  at(ClassLoss::kFocal, 0)
      .require({kLn2 / 16 + 3 * kLn2 / 16}, {-(kLn2 + 0.5) / 16, 3 * (kLn2 + 0.5) / 16});
  // q (q (-log p) + (1 - q) (-log(1 - p))) and alpha p^gamma (-log(1 - p)), gradients q (p - q) and
  // alpha p^gamma p.
  const Example varifocal = at(ClassLoss::kVarifocal, kThree, {0.5});
  varifocal.require({(kLn43 + kLn4) / 4 + 3 * kLn2 / 16}, {0.125, 3.0 / 32});
  with(varifocal, 0.5, 1).require({(kLn43 + kLn4) / 4 + kLn2 / 4}, {0.125, 0.125});
  // Towards q^gamma, here 1/8, and 1/16.
  const Example mal = at(ClassLoss::kMal, kThree, {0.25});
  mal.require({kLn43 / 8 + 7 * kLn4 / 8 + kLn2 / std::sqrt(8)}, {0.625, 1 / std::sqrt(32)});
  with(mal, 0.5, 2).require({kLn43 / 16 + 15 * kLn4 / 16 + kLn2 / 8}, {0.6875, 0.0625});
  // Towards p^alpha q^(1 - alpha): of p = 1/4 and q = 1/16 that is 2^(-1/2) / 8, of 1/4 and 1/9 by
  // square roots 1/6.
  const double wanted = std::sqrt(0.5) / 8;
  at(ClassLoss::kIaBce, -kThree, {0.0625})
      .require({wanted * kLn4 + (1 - wanted) * kLn43 + kLn2 / 4},
               {0.25 - wanted, (kLn2 + 0.5) / 4});
  with(at(ClassLoss::kIaBce, -kThree, {1.0 / 9}), 0.5, 1)
      .require({kLn4 / 6 + 5 * kLn43 / 6 + kLn2 / 2}, {1.0 / 12, (kLn2 / 2 + 0.5) / 2});
  at(ClassLoss::kIaBce, -kThree, {0})  // at least 0.01
      .require({0.01 * kLn4 + 0.99 * kLn43 + kLn2 / 4}, {0.24, (kLn2 + 0.5) / 4});
  at(ClassLoss::kBce, kThree, {0.25}).require({kLn43 / 4 + 3 * kLn4 / 4 + kLn2}, {0.5, 0.5});
  at(ClassLoss::kBce, kThree).require({kLn43 + kLn2}, {-0.25, 0.5});
  // Probabilities 3/4 and 1/4.
  at(ClassLoss::kSoftmax, kThree).require({kLn43}, {-0.25, 0.25});
}

TEST_CASE("which class a query is to have") {
  Example example = {ClassLoss::kBce, {0, kThree, kThree, 0, 0, 0, 0, 0, 0, -kThree}};
  // A box of class 1, none, one whose row is beyond the list, one of no class, and left out.
  example.target_index = {1, kNoBox, 3, 2, kIgnored};
  example.labels = {0, 1, 2};
  const Numbers others = {kLn4 + kLn2, 2 * kLn2, 2 * kLn2, 0};
  Numbers losses = {kLn2 + kLn43}, slopes = {0.5, -0.25, 0.75, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0};
  losses.insert(losses.end(), others.begin(), others.end());
  example.require(losses, slopes);

  // Its quality is that of its row, or its own.
  example.quality = {9, 0.25, 9};
  losses[0] = kLn2 + kLn43 / 4 + 3 * kLn4 / 4;
  slopes[1] = 0.5;
  example.require(losses, slopes);
  example.quality = {};
  example.query_quality = {0.5, 9, 9, 9, 9};
  example.weight = {1, 2};
  losses = {kLn2 + kLn43 + kLn4, kLn4 + 2 * kLn2, 3 * kLn2, 3 * kLn2, 0};
  example.require(losses, {0.5, 0.5, 0.75, 1, 0.5, 1, 0.5, 1, 0, 0});

  // The last class is that of queries without a box.
  example.mode = ClassLoss::kSoftmax;
  example.query_quality = {};
  example.no_object_weight = 0.5;
  losses = {2 * kLn43, kLn4, kLn2, kLn2, 0};  // 2 times 0.5 of the last class
  example.require(losses, {0.5, -0.5, 0.75, -0.75, 0.5, -0.5, 0.5, -0.5, 0, 0});
}

TEST_CASE("a class loss of queries that are neighbours") {
  Example example = {ClassLoss::kBce,
                     {0, -kThree, 0, kThree, 0, 0}};  // of class 0, then of class 1
  example.target_index = {kNoBox, 0, kNoBox};
  example.is_transposed = true;
  example.require({kLn2 + kLn4, kLn4 + kLn2, 2 * kLn2}, {0.5, -0.75, 0.5, 0.75, 0.5, 0.5});
}

TEST_CASE("what class losses are divided by") {
  Example example = {ClassLoss::kBce, Numbers(6, 0)};
  example.sets = 2;
  example.classes = 1;
  example.target_index = {0, 0, kIgnored, kNoBox, kNoBox, kIgnored};
  example.reduction = Reduction::kSum;
  example.require({2 * kLn2, 2 * kLn2}, {-0.5, -0.5, 0, 0.5, 0.5, 0}, {1, 1});
  example.reduction = Reduction::kMean;  // by two boxes, and by 1 where there are none
  example.require({kLn2, 2 * kLn2}, {-0.25, -0.25, 0, 0.5, 0.5, 0}, {0.5, 1});
  example.normalizer = {4};
  example.require({kLn2 / 2, kLn2 / 2}, {-0.125, -0.125, 0, 0.125, 0.125, 0}, {0.25, 0.25});
  example.normalizer = {4, 0.5};
  example.require({kLn2 / 2, 4 * kLn2}, {-0.125, -0.125, 0, 1, 1, 0}, {0.25, 2});

  example = {ClassLoss::kSoftmax, Numbers(12, 0)};
  example.sets = 2;
  example.target_index = {0, kNoBox, kIgnored, kIgnored, kIgnored, kIgnored};
  example.weight = {3, 2};
  example.no_object_weight = 0.25;
  example.reduction = Reduction::kMean;  // by the weights, 3 and 0.5, and by 1 where there are none
  example.require({kLn2, 0},
                  {-1.5 / 3.5, 1.5 / 3.5, 0.25 / 3.5, -0.25 / 3.5, 0, 0, 0, 0, 0, 0, 0, 0},
                  {1 / 3.5, 1});
}

}  // namespace
}  // namespace boxloss
