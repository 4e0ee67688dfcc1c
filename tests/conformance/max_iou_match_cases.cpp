// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "index_arrays.hpp"
#include "max_iou_match.hpp"

namespace boxloss::conformance {
namespace {

using namespace words;

constexpr LowQuality none = LowQuality::kNone, argmax = LowQuality::kArgmax,
                     overwrite = LowQuality::kOverwrite, force = LowQuality::kForce;
constexpr AnchorPlaces grid = AnchorPlaces::kGrid, scattered = AnchorPlaces::kScattered,
                       endless = AnchorPlaces::kEndless;
constexpr AngleUnit radians = AngleUnit::kRadians, degrees = AngleUnit::kDegrees;
constexpr Thresholds rpn = {0.7, 0.3}, retina = {0.5, 0.4}, ssd = {0.5, 0.5}, all = {0, 0},
                     nothing = {2, 2}, ignored = {2, 0};

// clang-format off
const std::vector<MatchCase> kCases = {
    // name, dtypes, layouts, offsets, index, {images, anchors, boxes}, {high, low}, low_quality, min_pos_iou, anchors, values, indices, angle_unit
    // --- rules
    {"none", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, retina, none},
    {"argmax", f32, f32, one_image, packed, i32, i64, {3, 300, 17}, rpn, argmax},
    {"overwrite", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, rpn, overwrite},
    {"force", f32, f32, one_image, packed, i32, i64, {3, 300, 17}, ssd, force},
    // --- what the random mixes seldom have
    {"one coordinate", f32, f32, one_coordinate, one_coordinate, i64, i64, {2, 40, 9}, rpn, argmax, 0, scattered},
    // --- ties, degenerate and inverted boxes
    {"kinks, argmax", f32, f32, packed, packed, i64, i64, {4, 60, 30}, rpn, argmax, 0, scattered, kinks},
    {"kinks, overwrite, 0.5", f32, f32, packed, packed, i64, i64, {4, 60, 30}, rpn, overwrite, 0.5, scattered, kinks},
    {"kinks, f64, force", f64, f64, packed, packed, i64, i64, {4, 60, 30}, ssd, force, 0, scattered, kinks},
    // --- NaN and infinity
    {"special, argmax", f32, f32, packed, packed, i64, i64, {9, 60, 12}, rpn, argmax, 0, scattered, special},
    {"special, force", f32, f32, packed, packed, i64, i64, {9, 60, 12}, ssd, force, 0, scattered, special},
    {"special, f64", f64, f64, packed, packed, i64, i64, {9, 60, 12}, rpn, argmax, 0, scattered, special},
    // --- rotated boxes
    {"rotated, none", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, retina, none, 0, grid, plain, {}, radians},
    {"rotated, argmax", f16, f32, planes, packed, i64, i64, {3, 300, 17}, rpn, argmax, 0, grid, plain, {}, degrees},
    {"rotated, overwrite", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, retina, overwrite, 0, grid, plain, {}, radians},
    {"rotated, kinks, argmax", f32, f32, packed, packed, i64, i64, {4, 60, 30}, rpn, argmax, 0, scattered, kinks, {}, radians},
    {"rotated, kinks, f64, force", f64, f64, packed, packed, i64, i64, {4, 60, 30}, ssd, force, 0, scattered, kinks, {}, degrees},
    {"rotated, special, argmax", f32, f32, packed, packed, i64, i64, {9, 60, 12}, rpn, argmax, 0, scattered, special, {}, radians},
    {"rotated, endless", f32, f32, packed, packed, i64, i64, {2, 60, 12}, rpn, argmax, 0, endless, plain, {}, radians},
    {"rotated, many boxes, force", f32, f32, one_image, packed, i64, i64, {2, 70, 1200}, ssd, force, 0.01, grid, plain, {0, 500, 1200}, radians},
    // --- sizes
    {"240 anchors", f32, f32, one_image, packed, i64, i64, {2, 240, 20}, ssd, force},
    {"241 anchors", f32, f32, one_image, packed, i64, i64, {2, 241, 20}, rpn, argmax},
    {"many boxes", f32, f32, one_image, packed, i64, i64, {2, 70, 1200}, rpn, argmax, 0.01, grid, plain, {0, 500, 1200}},
    {"many boxes, overwrite", f64, f64, one_image, packed, i64, i64, {2, 70, 1200}, rpn, overwrite, 0.01, grid, plain, {0, 500, 1200}},
    {"many boxes, force", f32, f32, one_image, packed, i64, i64, {2, 70, 1200}, ssd, force, 0.01, grid, plain, {0, 500, 1200}},
};
// clang-format on

constexpr MaxIouShape kSmall = {3, 50, 20};

}  // namespace

const std::vector<MatchCase>& MaxIouMatch::table() { return kCases; }

MoreCases<MatchCase> MaxIouMatch::more_cases() {
  MoreCases<MatchCase> more;
  for (const char* name : {"none", "argmax", "force", "rotated, argmax"}) {
    more.further.push_back(changed(kCases, name, {1, 30011, 60}));  // of many tasks
  }
  more.further.push_back(changed(kCases, "overwrite", {1, 30011, 600}));  // each stages boxes anew
  add_changed(more.further, kCases, {"none", "overwrite"}, kSmall, wrong_offsets(i64));
  add_changed(more.further, kCases, {"argmax", "force"}, kSmall, wrong_offsets(i32));
  // Of each kind of arithmetic: what is computed of them is compared elsewhere.
  add_changed(more.wild, kCases,
              {"special, argmax", "special, f64", "special, force", "rotated, special, argmax"},
              kSmall, kWildOffsets64);
  add_changed(more.for_bits, kCases,
              {"none", "argmax", "overwrite", "force", "special, argmax", "rotated, none",
               "rotated, argmax"},
              {5, 4100, 70}, {{3, 20, 20, 33, 60, 67}});
  return more;
}

MatchCase MaxIouMatch::random_case(Random& random) {
  MatchCase c;
  c.anchor_dtype = random.chance(0.3) ? f32 : any_floating(random);
  c.target_dtype = random.chance(0.3) ? f32 : any_dtype(random);
  c.anchor_layout = random.chance(0.2) ? one_image : any_layout(random);
  c.target_layout = any_layout(random);
  c.offsets = any_index(random);
  c.index = any_index(random);
  c.shape = {random.below(5), random.below(random.chance(0.3) ? 600 : 100), random.below(40)};
  c.at = random.pick(std::vector<Thresholds>{rpn, retina, ssd, all, nothing, ignored});
  c.low_quality = random.pick(std::vector<LowQuality>{none, argmax, overwrite, force});
  c.min_pos_iou = random.pick(std::vector<double>{0, 0, 0.3, -1});
  c.anchors = random.pick(std::vector<AnchorPlaces>{grid, grid, scattered, scattered, endless});
  c.values = random.pick(std::vector<Values>{plain, plain, kinks, special});
  if (random.chance(0.4)) c.angle_unit = random.chance(0.7) ? radians : degrees;
  return c;
}

std::string MaxIouMatch::describe(const MatchCase& c) {
  return in_words("anchors", c.anchor_dtype, c.anchor_layout, "target", c.target_dtype,
                  c.target_layout, "offsets", c.offsets, "index", c.index, "shape", c.shape.images,
                  c.shape.anchors, c.shape.boxes, "thresholds", c.at.high, c.at.low, c.low_quality,
                  c.min_pos_iou, "places", c.anchors, "values", c.values,
                  c.angle_unit ? name_of(*c.angle_unit) : "");
}

}  // namespace boxloss::conformance
