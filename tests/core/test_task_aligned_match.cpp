// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "oracle.hpp"

/// Task-aligned matches worked out by hand.
namespace boxloss {
namespace {

using Indices64 = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Rows = std::vector<Boxes>;

/// Of a number that is 1 or less, but for the eps of the overlap and of the score.
constexpr double kNear = 1e-6;

struct Matched {
  Indices64 target_index;
  Floats score, overlap;
};

struct Example {
  Rows points, pred;  ///< of one image
  Rows scores;        ///< of each anchor, for each class
  Rows target;
  Indices64 labels;
  std::vector<std::int32_t> offsets = {0, static_cast<std::int32_t>(target.size())};
  TaskAlignedProblem problem = {};

  Matched matched() const {
    const Boxes all_points = joined(points), all_pred = joined(pred), all_scores = joined(scores),
                all_target = joined(target);
    const auto size = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
    TaskAlignedProblem p = problem;
    p.images = 1;
    p.anchors = size(points);
    p.classes = size(scores[0]);
    p.scores = {all_scores.data(), DType::kF64, 0, p.classes, 1};
    p.pred = {all_pred.data(), DType::kF64, BoxFormat::kXyxy, 1, p.anchors, 0, 4};
    p.points = {all_points.data(), DType::kF64};
    p.target = {all_target.data(), DType::kF64, BoxFormat::kXyxy, 1, size(target), 0, 4};
    if (!offsets.empty()) p.offsets = {offsets.data(), DType::kI32};
    p.labels = {labels.data(), DType::kI64};
    const std::size_t anchors = points.size();
    Matched result{Indices64(anchors, 99), Floats(anchors, 99), Floats(anchors, 99)};
    task_aligned_match(implementation("cpu/reference"), p,
                       {result.target_index.data(), result.score.data(), result.overlap.data()},
                       {});
    return result;
  }
};

void require(const Example& example, const Indices64& rows, const Floats& scores,
             const Floats& overlaps) {
  const Matched got = example.matched();
  REQUIRE(got.target_index == rows);
  for (std::size_t a = 0; a < rows.size(); ++a) {
    INFO("anchor " << a);
    CHECK_THAT(got.score[a], WithinAbs(scores[a], kNear));
    CHECK_THAT(got.overlap[a], WithinAbs(overlaps[a], kNear));
  }
}

const std::vector<double> kSquare = {0, 0, 4, 4};

/// A square, and predictions that are equal to it.
Example square(const Rows& points, const Rows& scores) {
  return {points, Rows(points.size(), kSquare), scores, {kSquare}, {0}};
}

TEST_CASE("a box chooses anchors whose points lie in it, and scores them by its best") {
  Example example = square({{1, 1}, {2, 2}, {5, 2}, {4, 2}, {2, 0}}, {{.25}, {.81}, {1}, {1}, {1}});
  const float lower = .5f / .9f;
  require(example, {0, 0, -1, -1, -1}, {lower, 1, 0, 0, 0}, {1, 1, 0, 0, 0});
  example.problem.topk = 1;
  require(example, {-1, 0, -1, -1, -1}, {0, 1, 0, 0, 0}, {0, 1, 0, 0, 0});
}

TEST_CASE("a metric is the score's power times the overlap's") {
  // The prediction's right half is missing: iou is 1/2, the centres are 1 apart, the diagonal
  // squared is 32, and v = 4 / pi^2 (atan(1) - atan(1/2))^2 = 0.04195, alpha = v / (1/2 + v).
  constexpr double kOverlap = 0.5 - 1.0 / 32 - 0.04195487 * 0.04195487 / (0.5 + 0.04195487);
  Example example = square({{1, 1}, {2, 2}}, {{1}, {.25}});
  example.pred[0] = {0, 0, 2, 4};
  example.problem.beta = 1;
  const auto least = static_cast<float>(kOverlap);
  require(example, {0, 0}, {least / .5f, 1}, {least, 1});
}

/// Two boxes that choose anchor 0, and a third one that overlaps more with it, but chooses another.
Example three_boxes() {
  return {{{1, 1}, {2, 2}},
          {kSquare, kSquare},
          {{1, .25}, {.01, .81}},
          {{0, 0, 4, 5}, {0, 0, 5, 4}, kSquare},
          {0, 0, 1}};
}

TEST_CASE("an anchor that several boxes choose goes to the one that overlaps most with it") {
  Example example = three_boxes();
  example.problem.topk = 1;
  require(example, {2, 2}, {.5f / .9f, 1}, {1, 1});
  // Which must be a candidate's: the third box does not contain this point.
  example.points[0] = {1, 4.5};
  example.target[0] = {0, 0, 4, 5};
  example.target[1] = {0, 0, 5, 5};
  REQUIRE(example.matched().target_index == Indices64{0, 2});
}

TEST_CASE("an anchor that one box chooses is its own, whatever overlaps more") {
  Example example = three_boxes();
  example.problem.topk = 1;
  example.labels[1] = 1;  // and chooses anchor 1, as the third does
  REQUIRE(example.matched().target_index == Indices64{0, 2});
}

TEST_CASE("a box keeps its best topk2 anchors") {
  Example example = three_boxes();
  example.problem.topk = 2;
  require(example, {2, 2}, {.5f / .9f, 1}, {1, 1});
  example.problem.topk2 = 1;
  require(example, {-1, 2}, {0, 1}, {0, 1});
  example.problem.topk2 = 2;  // as topk: all
  require(example, {2, 2}, {.5f / .9f, 1}, {1, 1});
  // A box that has more than it chose keeps them, unless it is told otherwise.
  example.problem.topk = 1;
  example.problem.topk2 = 1;
  require(example, {2, 2}, {.5f / .9f, 1}, {1, 1});
}

TEST_CASE("points lie in small boxes that were enlarged") {
  Example example = {{{9.5, 11}, {8.5, 11}, {11, 14.5}},
                     Rows(3, {10, 10, 12, 14}),
                     Rows(3, {1}),
                     {{10, 10, 12, 14}},
                     {0}};
  require(example, {-1, -1, -1}, {0, 0, 0}, {0, 0, 0});
  example.problem.min_side = 4;  // x from 9 to 13, y as it is
  require(example, {0, -1, -1}, {1, 0, 0}, {1, 0, 0});
  example.problem.small_side = 2;  // which the width is
  require(example, {-1, -1, -1}, {0, 0, 0}, {0, 0, 0});
  example.problem.small_side = 2.5;
  require(example, {0, -1, -1}, {1, 0, 0}, {1, 0, 0});
}

TEST_CASE("only a metric above 0 counts") {
  Example example = square({{1, 1}, {2, 2}, {3, 3}, {1, 3}}, {{0}, {.5}, {kNan}, {.5}});
  example.pred[3] = {20, 20, 30, 30};  // whose CIoU is negative
  require(example, {-1, 0, -1, -1}, {0, 1, 0, 0}, {0, 1, 0, 0});
  example.pred[1] = {0, 0, kNan, 4};
  require(example, {-1, -1, -1, -1}, {0, 0, 0, 0}, {0, 0, 0, 0});
}

TEST_CASE("padding and labels that name no class have no anchor") {
  Example example = square({{1, 1}}, {{.5, .5}});
  for (const std::int64_t label : {-1, 2, 99}) {
    example.labels = {label};
    require(example, {-1}, {0}, {0});
  }
  example.labels = {1};
  require(example, {0}, {1}, {1});
  example.offsets = {};  // as padded boxes
  require(example, {0}, {1}, {1});
  example.target = {{-2, -2, 2, 2}};  // whose sum is 0
  require(example, {-1}, {0}, {0});
  example.offsets = {0, 1};
  REQUIRE(example.matched().target_index == Indices64{0});
}

}  // namespace
}  // namespace boxloss
