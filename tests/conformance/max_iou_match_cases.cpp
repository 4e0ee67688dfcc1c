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
constexpr Thresholds rpn = {0.7, 0.3}, retina = {0.5, 0.4}, ssd = {0.5, 0.5}, all = {0, 0},
                     nothing = {2, 2}, ignored = {2, 0};

// clang-format off
const std::vector<MatchCase> kCases = {
    // name, dtypes, layouts, offsets, index, {images, anchors, boxes}, {high, low}, low_quality, min_pos_iou, anchors, values, cuts
    // --- rules
    {"none", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, retina, none},
    {"argmax", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, rpn, argmax},
    {"overwrite", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, rpn, overwrite},
    {"overwrite, 0.3", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, rpn, overwrite, 0.3},
    {"argmax, 0.3", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, rpn, argmax, 0.3},
    {"force", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, ssd, force},
    {"force, 0.3", f32, f32, one_image, packed, i64, i64, {3, 300, 17}, ssd, force, 0.3},
    {"all are matched", f32, f32, one_image, packed, i64, i64, {2, 300, 17}, all, none},
    {"none is matched", f32, f32, one_image, packed, i64, i64, {2, 300, 17}, nothing, none},
    {"all are ignored", f32, f32, one_image, packed, i64, i64, {2, 300, 17}, ignored, none},
    {"only the best", f32, f32, one_image, packed, i64, i64, {2, 300, 17}, nothing, argmax},
    {"only the best, overwritten", f32, f32, one_image, packed, i64, i64, {2, 300, 17}, nothing, overwrite},
    {"only the first best", f32, f32, one_image, packed, i64, i64, {2, 300, 17}, nothing, force},
    // --- what the random mixes seldom have
    {"f64 f64", f64, f64, one_image, packed, i64, i32, {2, 300, 17}, rpn, argmax},
    {"one coordinate", f32, f32, one_coordinate, one_coordinate, i64, i64, {2, 40, 9}, rpn, argmax, 0, scattered},
    // --- ties, degenerate and inverted boxes
    {"kinks", f32, f32, packed, packed, i64, i64, {4, 60, 30}, rpn, none, 0, scattered, kinks},
    {"kinks, argmax", f32, f32, packed, packed, i64, i64, {4, 60, 30}, rpn, argmax, 0, scattered, kinks},
    {"kinks, overwrite", f32, f32, packed, packed, i64, i64, {4, 60, 30}, rpn, overwrite, 0, scattered, kinks},
    {"kinks, overwrite, 0.5", f32, f32, packed, packed, i64, i64, {4, 60, 30}, rpn, overwrite, 0.5, scattered, kinks},
    {"kinks, force", f32, f32, packed, packed, i64, i64, {4, 60, 30}, ssd, force, 0, scattered, kinks},
    {"kinks, f64", f64, f64, packed, packed, i64, i64, {4, 60, 30}, rpn, argmax, 0, scattered, kinks},
    {"kinks, f64, force", f64, f64, packed, packed, i64, i64, {4, 60, 30}, ssd, force, 0, scattered, kinks},
    {"kinks on a grid", f32, f32, one_image, packed, i64, i64, {4, 600, 30}, rpn, argmax, 0, grid, kinks},
    // --- NaN and infinity
    {"special", f32, f32, packed, packed, i64, i64, {4, 60, 12}, rpn, none, 0, scattered, special},
    {"special, argmax", f32, f32, packed, packed, i64, i64, {9, 60, 12}, rpn, argmax, 0, scattered, special},
    {"special, overwrite", f32, f32, packed, packed, i64, i64, {9, 60, 12}, rpn, overwrite, 0, scattered, special},
    {"special, force", f32, f32, packed, packed, i64, i64, {9, 60, 12}, ssd, force, 0, scattered, special},
    {"special, f64", f64, f64, packed, packed, i64, i64, {9, 60, 12}, rpn, argmax, 0, scattered, special},
    {"special boxes on a grid", f32, f32, one_image, packed, i64, i64, {9, 600, 12}, rpn, argmax, 0, grid, special},
    {"special boxes on a grid, overwrite", f32, f32, one_image, packed, i64, i64, {9, 600, 12}, rpn, overwrite, 0, grid, special},
    {"without end", f32, f32, packed, packed, i64, i64, {2, 60, 12}, rpn, none, 0, endless},
    {"without end, f64", f64, f64, packed, packed, i64, i64, {2, 60, 12}, rpn, argmax, 0, endless},
    // --- images without boxes, boxes without an image
    {"no boxes", f32, f32, one_image, packed, i64, i64, {3, 100, 0}, rpn, argmax},
    {"no boxes, f64", f64, f32, packed, packed, i32, i32, {3, 100, 0}, all, force},
    {"no anchors", f32, f32, packed, packed, i64, i64, {3, 0, 9}, rpn, argmax},
    {"no images", f32, f32, packed, packed, i64, i64, {0, 100, 9}, rpn, overwrite},
    {"empty images", f32, f32, one_image, packed, i32, i64, {7, 100, 12}, all, argmax, 0, grid, plain, {0, 0, 3, 3, 3, 9, 12, 12}},
    {"empty images, force", f32, f32, one_image, packed, i32, i64, {7, 100, 12}, all, force, 0, grid, plain, {0, 0, 3, 3, 3, 9, 12, 12}},
    {"only empty images", f32, f32, one_image, packed, i64, i64, {3, 100, 12}, all, overwrite, 0, grid, plain, {4, 4, 4, 4}},
    {"boxes of no image", f32, f32, one_image, wide, i64, i32, {2, 100, 40}, rpn, overwrite, 0, grid, plain, {11, 13, 29}},
    {"boxes of no image, force", f32, f32, one_image, wide, i64, i32, {2, 100, 40}, rpn, force, 0, grid, plain, {11, 13, 29}},
    // --- sizes
    {"one pair", f32, f32, packed, packed, i64, i64, {1, 1, 1}, rpn, argmax, 0, grid, plain, {0, 1}},
    {"16 anchors", f32, f32, one_image, packed, i64, i64, {2, 16, 20}, rpn, argmax},
    {"17 anchors", f32, f32, one_image, packed, i64, i64, {2, 17, 20}, rpn, overwrite},
    {"240 anchors", f32, f32, one_image, packed, i64, i64, {2, 240, 20}, ssd, force},
    {"241 anchors", f32, f32, one_image, packed, i64, i64, {2, 241, 20}, rpn, argmax},
    {"257 anchors", f32, f32, one_image, packed, i64, i64, {2, 257, 20}, rpn, overwrite},
    {"many anchors", f32, f32, one_image, packed, i64, i64, {2, 5000, 40}, rpn, argmax},
    {"many anchors, overwrite", f32, f32, one_image, packed, i64, i64, {2, 5000, 40}, rpn, overwrite},
    {"many anchors, force", f32, f32, one_image, packed, i64, i64, {2, 5000, 40}, ssd, force},
    {"many anchors, none", f64, f32, one_image, packed, i64, i64, {2, 5000, 40}, retina, none},
    {"many boxes", f32, f32, one_image, packed, i64, i64, {2, 70, 1200}, rpn, argmax, 0.01, grid, plain, {0, 500, 1200}},
    {"many boxes, overwrite", f64, f64, one_image, packed, i64, i64, {2, 70, 1200}, rpn, overwrite, 0.01, grid, plain, {0, 500, 1200}},
    {"many boxes, force", f32, f32, one_image, packed, i64, i64, {2, 70, 1200}, ssd, force, 0.01, grid, plain, {0, 500, 1200}},
    // --- offsets that lead outside or decrease: no image has boxes
    {"offsets below 0", f32, f32, one_image, packed, i64, i64, {3, 100, 20}, all, argmax, 0, grid, plain, {-1, 4, 6, 20}},
    {"offsets beyond the boxes", f32, f32, one_image, packed, i32, i32, {3, 100, 20}, all, overwrite, 0, grid, plain, {0, 4, 6, 21}},
    {"offsets that decrease", f64, f32, one_image, packed, i64, i32, {3, 100, 20}, all, force, 0, grid, plain, {0, 12, 11, 20}},
    {"only the middle leads outside", f32, f32, one_image, packed, i64, i64, {3, 100, 20}, all, none, 0, grid, plain, {0, 21, 21, 20}},
};
// clang-format on

/// Of the table, with three images and twenty boxes.
MatchCase small_case(const char* name, const std::vector<std::int64_t>& offsets, DType dtype) {
  MatchCase c = case_named(MaxIouMatch::cases(), name);
  c.shape = {3, 50, 20};
  c.offsets = dtype;
  c.cuts = offsets;
  return c;
}

}  // namespace

const std::vector<CaseGroup<MatchCase>>& MaxIouMatch::cases() {
  static const std::vector<CaseGroup<MatchCase>> groups = {{kEveryCase, kCases}};
  return groups;
}

std::vector<MatchCase> MaxIouMatch::further_cases() {
  std::vector<MatchCase> list;
  for (const char* name : {"none", "argmax", "overwrite", "force"}) {
    MatchCase c = case_named(cases(), name);
    c.shape = {2, 30011, 60};  // of many tasks
    list.push_back(c);
    for (const DType dtype : {i32, i64}) {
      for (const auto& offsets : wrong_offsets(dtype)) {
        list.push_back(small_case(name, offsets, dtype));
      }
    }
  }
  return list;
}

/// Of each kind of arithmetic: what is computed of them is compared elsewhere.
std::vector<MatchCase> MaxIouMatch::wild_cases() {
  std::vector<MatchCase> list;
  for (const char* name : {"special, argmax", "special, f64", "special, force"}) {
    for (const auto& offsets : kWildOffsets64) list.push_back(small_case(name, offsets, i64));
  }
  return list;
}

std::vector<MatchCase> MaxIouMatch::cases_for_bits() {
  std::vector<MatchCase> list;
  for (const char* name : {"none", "argmax", "overwrite", "force", "special, argmax"}) {
    list.push_back(case_named(cases(), name));
    list.back().shape = {5, 4100, 70};
    list.back().cuts = {3, 20, 20, 33, 60, 67};
  }
  return list;
}

MatchCase MaxIouMatch::random_case(Random& random) {
  MatchCase c;
  c.anchor_dtype = random.chance(0.3) ? f32 : any_floating(random);
  c.target_dtype = random.chance(0.3) ? f32 : any_dtype(random);
  c.anchor_layout = random.chance(0.2) ? one_image : any_layout(random);
  c.target_layout = any_layout(random);
  c.offsets = any_index(random);
  c.index = any_index(random);
  c.shape = {random.below(5), random.below(600), random.below(40)};
  c.at = random.pick(std::vector<Thresholds>{rpn, retina, ssd, all, nothing, ignored});
  c.low_quality = random.pick(std::vector<LowQuality>{none, argmax, overwrite, force});
  c.min_pos_iou = random.pick(std::vector<double>{0, 0, 0.3, -1});
  c.anchors = random.pick(std::vector<AnchorPlaces>{grid, scattered});
  c.values = random.pick(std::vector<Values>{plain, plain, kinks, special});
  return c;
}

std::string MaxIouMatch::describe(const MatchCase& c) {
  return in_words("anchors", c.anchor_dtype, c.anchor_layout, "target", c.target_dtype,
                  c.target_layout, "offsets", c.offsets, "index", c.index, "shape", c.shape.images,
                  c.shape.anchors, c.shape.boxes, "thresholds", c.at.high, c.at.low, c.low_quality,
                  c.min_pos_iou, "places", c.anchors, "values", c.values);
}

}  // namespace boxloss::conformance
