// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

/// Matches worked out by hand.
namespace boxloss {
namespace {

using Indices64 = std::vector<std::int64_t>;
using Boxes4 = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Matches {
  Indices64 target_index;
  std::vector<float> iou;
};

struct Example {
  Boxes4 anchors, target;
  Indices64 offsets;
  double high = 0.7, low = 0.3, min_pos_iou = 0;

  Matches matched(LowQuality low_quality) const {
    MaxIouProblem p;
    const auto boxes = [](const Boxes4& values) {
      const auto count = static_cast<std::int64_t>(values.size()) / 4;
      return BoxView{values.data(), DType::kF32, BoxFormat::kXyxy, 1, count, 0};
    };
    p.anchors = boxes(anchors);
    p.anchors.images = static_cast<std::int64_t>(offsets.size()) - 1;
    p.target = boxes(target);
    p.offsets = {offsets.data(), DType::kI64};
    p.high = high;
    p.low = low;
    p.low_quality = low_quality;
    p.min_pos_iou = min_pos_iou;
    const auto count = static_cast<std::size_t>(p.anchors.images * p.anchors.slots);
    Matches result{Indices64(count, 99), std::vector<float>(count, 99)};
    max_iou_match(implementation("cpu/reference"), p,
                  {result.target_index.data(), result.iou.data()}, {});
    return result;
  }

  void require(LowQuality low_quality, const Indices64& expected) const {
    INFO(name_of(low_quality));
    REQUIRE(matched(low_quality).target_index == expected);
  }
};

/// Of an anchor of 10 x 10 in the origin the upper part of that height, whose IoU is a tenth of it.
Boxes4 upper_part(float height) { return {0, 0, 10, height}; }

Boxes4 joined(const std::vector<Boxes4>& parts) {
  Boxes4 all;
  for (const Boxes4& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const Boxes4 kAnchor = upper_part(10), kFar = {50, 50, 60, 60};

TEST_CASE("an anchor's IoU decides between a box, none, and neither") {
  for (const float height : {10.0f, 7.0f}) {
    Example{kAnchor, upper_part(height), {0, 1}}.require(LowQuality::kNone, {0});
  }
  for (const float height : {6.9f, 3.0f}) {
    Example{kAnchor, upper_part(height), {0, 1}}.require(LowQuality::kNone, {kIgnored});
  }
  for (const float height : {2.9f, 0.0f}) {
    Example{kAnchor, upper_part(height), {0, 1}}.require(LowQuality::kNone, {kNoBox});
  }
  Example{kAnchor, kFar, {0, 1}}.require(LowQuality::kNone, {kNoBox});
}

TEST_CASE("an anchor gets the box that it overlaps most, of equal ones the first") {
  const Example example = {
      kAnchor, joined({upper_part(8), upper_part(9), {0, 0, 9, 10}, upper_part(7)}), {0, 4}};
  example.require(LowQuality::kNone, {1});
  REQUIRE(example.matched(LowQuality::kNone).iou[0] == 0.9f);
}

TEST_CASE("what becomes of a box's best anchors") {
  // The first overlaps the anchor more; the anchor is the best of both.
  Example example = {joined({kAnchor, kFar}), joined({upper_part(4), upper_part(2)}), {0, 2}};
  example.require(LowQuality::kNone, {kIgnored, kNoBox});
  example.require(LowQuality::kArgmax, {0, kNoBox});
  example.require(LowQuality::kOverwrite, {1, kNoBox});
  example.require(LowQuality::kForce, {1, kNoBox});
  example.min_pos_iou = 0.3;  // the second box's best is less
  example.require(LowQuality::kArgmax, {0, kNoBox});
  example.require(LowQuality::kOverwrite, {0, kNoBox});
  example.require(LowQuality::kForce, {0, kNoBox});
  example.min_pos_iou = 0.5;
  example.require(LowQuality::kArgmax, {kIgnored, kNoBox});
  example.require(LowQuality::kOverwrite, {kIgnored, kNoBox});
  example.require(LowQuality::kForce, {kIgnored, kNoBox});
}

TEST_CASE("of equally good anchors all are the best, or the first is") {
  const Example example = {joined({kFar, kAnchor, kAnchor}), upper_part(2), {0, 1}};
  example.require(LowQuality::kArgmax, {kNoBox, 0, 0});
  example.require(LowQuality::kOverwrite, {kNoBox, 0, 0});
  example.require(LowQuality::kForce, {kNoBox, 0, kNoBox});
}

TEST_CASE("every anchor is the best of a box that meets none") {
  Example example = {joined({kAnchor, kFar}), joined({upper_part(9), {90, 90, 99, 99}}), {0, 2}};
  example.require(LowQuality::kNone, {0, kNoBox});
  example.require(LowQuality::kArgmax, {0, 0});
  example.require(LowQuality::kOverwrite, {1, 1});
  example.require(LowQuality::kForce, {1, kNoBox});
  example.min_pos_iou = 1e-9;
  example.require(LowQuality::kArgmax, {0, kNoBox});
  example.require(LowQuality::kOverwrite, {0, kNoBox});
  example.require(LowQuality::kForce, {0, kNoBox});
}

TEST_CASE("images have boxes of their own, or none") {
  const Example example = {
      joined({kAnchor, kFar}), joined({kFar, upper_part(8), kFar, kAnchor}), {1, 2, 2, 3}};
  example.require(LowQuality::kNone, {1, kNoBox, kNoBox, kNoBox, kNoBox, 2});
  example.require(LowQuality::kArgmax, {1, kNoBox, kNoBox, kNoBox, kNoBox, 2});
}

TEST_CASE("NaN is the best of all") {
  const Boxes4 nan_box = {0, 0, kNan, 10};
  Example example = {joined({kAnchor, kFar}), joined({kAnchor, nan_box, nan_box}), {0, 3}};
  example.require(LowQuality::kNone, {1, 1});
  example.require(LowQuality::kArgmax, {1, 1});
  example.require(LowQuality::kForce, {0, 1});  // a box whose best IoU is NaN has no part
  example = {joined({nan_box, kAnchor}), joined({upper_part(2), kFar}), {0, 2}};
  example.require(LowQuality::kNone, {0, kNoBox});
  example.require(LowQuality::kArgmax, {0, kNoBox});
  REQUIRE(std::isnan(example.matched(LowQuality::kNone).iou[0]));
}

TEST_CASE("an empty box and an empty anchor have NaN, 0 / 0, wherever they are") {
  const Boxes4 point = {5, 5, 5, 5}, other_point = {500, 5, 500, 5};
  const Example example = {joined({kAnchor, other_point}), joined({kAnchor, point}), {0, 2}};
  example.require(LowQuality::kNone, {0, 1});
  Example{kAnchor, point, {0, 1}}.require(LowQuality::kNone, {kNoBox});
}

}  // namespace
}  // namespace boxloss
