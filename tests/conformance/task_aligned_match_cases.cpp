// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "index_arrays.hpp"
#include "task_aligned_match.hpp"

namespace boxloss::conformance {
namespace {

using namespace words;

constexpr Anchors real = Anchors::kReal, alike = Anchors::kAlike, with_nan = Anchors::kWithNan,
                  infinite = Anchors::kInfinite, wild = Anchors::kWild;
constexpr AngleUnit radians = AngleUnit::kRadians, degrees = AngleUnit::kDegrees;
constexpr std::optional<std::int64_t> all = std::nullopt;

constexpr Operand plain_boxes = {f32, xyxy, packed};
constexpr MatchDTypes floats = {f32, f32, i64, i64, i64};
constexpr MatchLayouts usual = {packed, one_image};
constexpr MatchRule rule = {};

// clang-format off
const std::vector<TaskAlignedCase> kCases = {
    // name, {scores, points, offsets, labels, index}, {scores, points}, pred, target, {images, anchors, classes, boxes, padded}, {topk, topk2, alpha, beta, min_side, small_side}, values, indices, labels, angle_unit
    // --- dtypes
    {"f32", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 14}, rule, real},
    {"f16 scores", {f16, f32, i64, i64, i64}, usual, plain_boxes, plain_boxes, {3, 80, 5, 14}, rule, real},
    {"u8 target", {f32, f32, i32, i32, i32}, usual, plain_boxes, {u8, xyxy, packed}, {3, 80, 5, 14}, rule, real},
    {"f64", {f64, f64, i64, i64, i32}, usual, {f64, xyxy, packed}, {f64, xyxy, packed}, {3, 80, 5, 14}, rule, real},
    // --- layouts that the random mixes seldom have, and one image's points for each
    {"points of each image", floats, {packed, packed}, plain_boxes, plain_boxes, {3, 80, 5, 14}, rule, real},
    {"one prediction for all", floats, usual, {f32, xyxy, one_box}, plain_boxes, {3, 80, 5, 14}, rule, real},
    {"one score for all classes", floats, {one_coordinate, one_image}, plain_boxes, plain_boxes, {3, 80, 5, 14}, rule, real},
    // --- padded boxes
    {"padded", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 7, true}, rule, real},
    // --- the rule's numbers
    {"topk as many as anchors", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 14}, {80}, real},
    {"topk more than anchors", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 14}, {1ll << 40}, real},
    {"topk2 1", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 14}, {7, 1}, real},
    {"topk2 more than anchors", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 30}, {2, 1ll << 40}, real},
    {"fractions", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 14}, {10, all, 0.7, 5.5}, real},
    {"beta 0", floats, usual, plain_boxes, plain_boxes, {3, 80, 2, 30}, {10, all, 0.5, 0}, real, {0, 10, 20, 30}, {0, 1}},
    {"beta 17", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 14}, {10, all, 0.5, 17}, real},
    {"small boxes", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 14}, {10, all, 0.5, 6, 16}, real},
    // --- many at once, and ties
    {"many boxes", floats, usual, plain_boxes, plain_boxes, {2, 120, 5, 80}, rule, real},
    {"many boxes, topk2", floats, usual, plain_boxes, plain_boxes, {2, 120, 5, 80}, {10, 3, 0.5, 6, 16}, real},
    {"alike, topk2", floats, usual, plain_boxes, plain_boxes, {3, 80, 3, 14}, {9, 2}, alike},
    {"alike, f16", {f16, f16, i32, i32, i32}, usual, {f16, xyxy, planes}, {f16, xyxy, packed}, {3, 80, 3, 14}, {7}, alike},
    // --- what is not finite
    {"NaN, many boxes", floats, {planes, packed}, plain_boxes, plain_boxes, {2, 120, 5, 60}, {10, 4}, with_nan},
    {"NaN, beta 0", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 30}, {10, all, 0.5, 0}, with_nan},
    {"infinite scores", floats, usual, plain_boxes, plain_boxes, {3, 80, 2, 30}, {10, all, 0.5, 1}, infinite, {0, 10, 20, 30}, {0, 1}},
    // --- rotated boxes
    {"rotated", floats, usual, plain_boxes, plain_boxes, {3, 80, 5, 14}, rule, real, {}, {}, radians},
    {"rotated, f64", {f64, f64, i64, i64, i32}, usual, {f64, xyxy, packed}, {f64, xyxy, packed}, {3, 80, 5, 14}, rule, real, {}, {}, degrees},
    {"rotated, padded, small boxes", floats, usual, {f16, xyxy, planes}, plain_boxes, {3, 80, 5, 7, true}, {10, all, 0.5, 6, 16}, real, {}, {}, radians},
    {"rotated, many boxes, topk2", floats, usual, plain_boxes, plain_boxes, {2, 120, 5, 80}, {3, 2, 0.5, 1, 16}, real, {}, {}, radians},
    {"rotated, alike", floats, usual, plain_boxes, plain_boxes, {3, 80, 3, 14}, {9, 2}, alike, {}, {}, radians},
    {"rotated, NaN", floats, usual, plain_boxes, plain_boxes, {2, 120, 5, 60}, {3, 2, 0.5, 1}, with_nan, {}, {}, degrees},
    {"rotated, many anchors", floats, {planes, one_image}, {f32, xyxy, planes}, plain_boxes, {2, 3000, 5, 16}, {10, all, 0.5, 6, 16}, real, {0, 8, 16}, {}, radians},
    // --- large
    {"many anchors", floats, usual, plain_boxes, plain_boxes, {2, 3000, 5, 16}, {10, all, 0.5, 6, 16}, real, {0, 8, 16}},
    {"many anchors, planes", floats, {planes, one_image}, plain_boxes, plain_boxes, {2, 3000, 5, 16}, {10, all, 0.5, 6, 16}, real, {0, 8, 16}},
    {"many anchors, many of each box", floats, usual, plain_boxes, plain_boxes, {1, 3000, 5, 6}, {1500, 1200}, real, {0, 6}},
    // More than are found in one pass over the anchors, of more that count.
    {"many anchors alike", floats, usual, plain_boxes, plain_boxes, {1, 5000, 2, 4}, {600, 550}, alike, {0, 4}, {0, 1}},
    {"many anchors alike, one box", floats, usual, plain_boxes, plain_boxes, {1, 5000, 1, 1}, {700, 600}, alike, {0, 1}, {0}},
    {"many images", floats, usual, plain_boxes, plain_boxes, {300, 20, 5, 500}, rule, real},
    {"many boxes of one image", floats, usual, plain_boxes, plain_boxes, {1, 200, 5, 600}, {3, 2}, real, {0, 600}},
};
// clang-format on

constexpr MatchShape kSmall = {3, 40, 5, 20};

}  // namespace

const std::vector<TaskAlignedCase>& TaskAlignedMatch::table() { return kCases; }

MoreCases<TaskAlignedCase> TaskAlignedMatch::more_cases() {
  MoreCases<TaskAlignedCase> more;
  add_changed(more.further, kCases, {"f32"}, kSmall, wrong_offsets(i64));
  add_changed(more.further, kCases, {"u8 target"}, kSmall, wrong_offsets(i32));
  for (const char* name :
       {"f32", "f64", "f16 scores", "padded", "small boxes", "topk2 1", "fractions",
        "points of each image", "rotated", "rotated, f64", "rotated, padded, small boxes"}) {
    more.wild.push_back(case_named(kCases, name));
    more.wild.back().values = wild;
  }
  more.for_bits = {changed(kCases, "padded", {5, 300, 5, 20, true})};
  add_changed(more.for_bits, kCases,
              {"many boxes", "many boxes, topk2", "alike, topk2", "rotated, many boxes, topk2"},
              {5, 300, 5, 90}, {{}});
  return more;
}

TaskAlignedCase TaskAlignedMatch::random_case(Random& random) {
  TaskAlignedCase c;
  c.dtypes = {any_floating(random), any_floating(random), any_index(random), any_index(random),
              any_index(random)};
  c.layouts = {any_layout(random), any_layout(random)};
  c.pred = {any_floating(random), any_format(random), any_layout(random)};
  c.target = {
      random.pick(std::vector<DType>{f64, f32, f16, bf16, i16, i32, i64}), xyxy,
      random.pick(std::vector<Layout>{packed, wide, odd_gaps, shifted, transposed, planes, apart})};
  c.shape = {random.below(4), random.below(90), random.below(6), random.below(30),
             random.chance(0.4)};
  if (c.shape.is_padded) c.shape.boxes = random.below(9);
  c.rule.topk = random.pick(std::vector<std::int64_t>{1, 2, 7, 10, 13, 100});
  if (random.chance(0.4)) c.rule.topk2 = random.pick(std::vector<std::int64_t>{1, 2, 5, 20});
  c.rule.alpha = random.pick(std::vector<double>{0.5, 0.5, 1, 0, 2, 0.3});
  c.rule.beta = random.pick(std::vector<double>{6, 6, 1, 0, 3, 2.5});
  c.rule.min_side = random.pick(std::vector<double>{0, 16, 30});
  if (random.chance(0.3)) c.rule.small_side = c.rule.min_side / 2;
  c.values = random.pick(std::vector<Anchors>{real, real, real, alike, with_nan});
  if (random.chance(0.4)) c.angle_unit = random.chance(0.7) ? radians : degrees;
  return c;
}

std::string TaskAlignedMatch::describe(const TaskAlignedCase& c) {
  return in_words("scores", c.dtypes.scores, c.layouts.scores, "points", c.dtypes.points,
                  c.layouts.points, "pred", c.pred, "target", c.target, "offsets", c.dtypes.offsets,
                  "labels", c.dtypes.labels, "index", c.dtypes.index, "shape", c.shape.images,
                  c.shape.anchors, c.shape.classes, c.shape.boxes,
                  c.shape.is_padded ? "padded" : "", "topk", c.rule.topk, c.rule.topk2, "alpha",
                  c.rule.alpha, "beta", c.rule.beta, "sides", c.rule.min_side, c.rule.small_side,
                  "values", c.values, c.angle_unit ? name_of(*c.angle_unit) : "");
}

}  // namespace boxloss::conformance
