// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "class_loss.hpp"
#include "index_arrays.hpp"

namespace boxloss::conformance {
namespace {

using namespace words;

constexpr ClassLoss focal = ClassLoss::kFocal, varifocal = ClassLoss::kVarifocal,
                    mal = ClassLoss::kMal, ia_bce = ClassLoss::kIaBce, bce = ClassLoss::kBce,
                    softmax = ClassLoss::kSoftmax;
constexpr Reduction none = Reduction::kNone, sum = Reduction::kSum, mean = Reduction::kMean;
constexpr std::nullopt_t no = std::nullopt;
constexpr CaseQuality of_queries(DType dtype) { return {dtype, true}; }
constexpr CaseNormalizer by_set(DType dtype) { return {dtype, 1}; }
constexpr ClassShape coco = {2, 3, 37, 80, 23}, small = {2, 3, 21, 5, 9};

// CPU tasks are 16384 logits, tiles 240; a GPU's packs have up to eight, its rows 32 lanes.
// clang-format off
const std::vector<ClassCase> kCases = {
    // name, mode, logits, index, labels, {sets, images, queries, classes, targets}, reduction, quality, weight, normalizer, values, alpha, gamma, no_object_weight
    // --- modes
    {"focal", focal, {f32}, i64, i64, coco, none, no, no, no, plain},
    {"varifocal", varifocal, {f32}, i64, i64, coco, none, f32, no, no, plain},
    {"mal", mal, {f32}, i64, i64, coco, none, f32, no, no, plain},
    {"ia_bce", ia_bce, {f32}, i64, i64, coco, none, f32, no, no, plain},
    {"bce", bce, {f32}, i64, i64, coco, none, of_queries(f32), no, no, plain},
    {"bce, no quality", bce, {f32}, i64, i64, coco, mean, no, no, no, plain},
    {"softmax", softmax, {f32}, i64, i64, coco, none, no, no, no, plain, {}, {}, 0.1},
    // --- their numbers, in halves and doubles
    {"focal, f16", focal, {f16}, i32, i64, coco, sum, no, f32, no, plain, 0.3, 1.5},
    {"focal, no alpha, bf16", focal, {bf16}, i64, i32, coco, none, no, f16, no, plain, -1, 0},
    {"focal, f64", focal, {f64}, i64, i64, coco, none, no, f64, no, plain, 0, 1.5},
    {"varifocal, bf16", varifocal, {bf16}, i32, i32, coco, mean, f64, bf16, no, plain, 1.3, 0},
    {"mal, f16", mal, {f16}, i64, i64, coco, mean, of_queries(f16), no, no, plain, 0.7, 2},
    {"mal, f64", mal, {f64}, i64, i64, coco, none, of_queries(f32), f32, no, plain, {}, 1.3},
    {"ia_bce, alpha 1", ia_bce, {bf16}, i64, i64, coco, sum, bf16, f32, no, plain, 1, 1.5},
    {"ia_bce, alpha 0, f64", ia_bce, {f64}, i64, i64, coco, none, f64, no, no, plain, 0, 0},
    {"softmax, f64", softmax, {f64}, i64, i32, coco, mean, no, f32, no, plain, {}, {}, 0.1},
    {"softmax, bf16", softmax, {bf16}, i32, i64, coco, sum, no, bf16, no, plain, {}, {}, 0.3},
    // --- means
    {"mean", focal, {f32}, i64, i64, coco, mean, no, no, no, plain},
    {"mean by f32", mal, {f32}, i64, i64, coco, mean, f32, no, f32, plain},
    {"mean by f64, of sets", focal, {f32}, i64, i64, coco, mean, no, no, by_set(f64), plain},
    {"mean by i32, softmax", softmax, {f32}, i64, i64, coco, mean, no, f32, by_set(i32), plain, {}, {}, 0.1},
    {"mean of weights", softmax, {f32}, i64, i64, coco, mean, no, f32, no, plain, {}, {}, 0.1},
    {"mean, no weights", softmax, {f32}, i64, i64, {2, 2, 9, 3, 0}, mean, no, no, no, plain, {}, {}, 0},
    {"mean, no boxes", focal, {f32}, i64, i64, {2, 2, 9, 3, 0}, mean, no, no, no, plain},
    // --- layouts
    {"queries are neighbours", focal, {f32, planes}, i64, i64, {2, 2, 259, 5, 40}, none, no, f32, no, plain},
    {"queries are neighbours, mean", varifocal, {f16, planes}, i64, i64, {2, 2, 259, 5, 40}, mean, of_queries(f32), f32, no, plain},
    {"queries are neighbours, softmax", softmax, {bf16, planes}, i64, i64, {2, 2, 259, 5, 40}, mean, no, f32, no, plain},
    {"one set's logits", bce, {f32, packed, true}, i64, i64, {3, 2, 40, 8, 9}, sum, f32, f32, no, plain},
    {"one set's logits, packs", focal, {f16, packed, true}, i64, i64, {3, 2, 40, 8, 9}, mean, no, no, no, plain},
    {"one logit", focal, {f32, one_coordinate}, i64, i64, small, none, no, f32, no, plain},
    {"sets are no packs", focal, {bf16, packed}, i64, i64, {3, 3, 7, 5, 9}, mean, no, f32, no, plain},
    {"sets do not begin with packs", focal, {f32, odd_gaps}, i64, i64, {3, 1, 6, 8, 4}, mean, no, no, no, plain},
    {"unaligned", focal, {f32, shifted}, i64, i64, coco, sum, no, no, no, plain},
    {"odd gaps", mal, {f32, odd_gaps}, i64, i64, coco, mean, f32, no, no, plain},
    // --- sizes
    {"one class", focal, {f32}, i64, i64, {2, 3, 41, 1, 20}, mean, no, no, no, plain},
    {"one class, softmax", softmax, {f32}, i64, i64, {2, 3, 41, 1, 20}, none, no, no, no, plain, {}, {}, 0.1},
    {"three classes", varifocal, {f16}, i64, i64, {1, 3, 43, 3, 20}, mean, f32, no, no, plain},
    {"91 classes", softmax, {f32}, i64, i64, {2, 2, 19, 91, 20}, mean, no, f32, no, plain, {}, {}, 0.1},
    {"two tiles of classes", focal, {f32}, i64, i64, {1, 2, 9, 365, 20}, none, no, f32, no, plain},
    {"two tiles of classes, mal", mal, {bf16}, i64, i64, {1, 2, 9, 365, 20}, mean, f32, f32, no, plain},
    {"two tiles of classes, softmax", softmax, {f32}, i64, i64, {1, 2, 9, 365, 20}, none, no, no, no, plain},
    {"several tasks", focal, {f32}, i64, i64, {2, 2, 301, 80, 60}, mean, no, f32, no, plain},
    {"several tasks, none", ia_bce, {f32}, i64, i64, {1, 2, 301, 80, 60}, none, of_queries(f32), no, no, plain},
    {"several tasks, softmax", softmax, {f16}, i64, i64, {1, 2, 301, 80, 60}, mean, no, f32, no, plain, {}, {}, 0.1},
    {"several tasks, queries are neighbours", bce, {f32, planes}, i64, i64, {1, 2, 1500, 11, 60}, mean, f32, no, no, plain},
    {"no sets", focal, {f32}, i64, i64, {0, 2, 3, 4, 5}, mean, no, f32, no, plain},
    {"no images", varifocal, {f32}, i64, i64, {2, 0, 3, 4, 5}, mean, f32, no, by_set(f32), plain},
    {"no queries", softmax, {f32}, i64, i64, {2, 2, 0, 4, 5}, mean, no, no, no, plain},
    {"no classes", focal, {f32}, i64, i64, {2, 2, 3, 0, 5}, mean, no, f32, no, plain},
    {"no classes, none", bce, {f32, planes}, i64, i64, {2, 2, 3, 0, 5}, none, no, no, no, plain},
    {"no boxes at all", mal, {f32}, i64, i64, {2, 2, 9, 4, 0}, none, f32, no, no, plain},
    // --- logits and qualities at their ends
    {"kinks, focal", focal, {f32}, i64, i64, coco, none, no, f32, no, kinks},
    {"kinks, focal, 1.5", focal, {f64}, i64, i64, coco, none, no, no, no, kinks, -1, 1.5},
    {"kinks, varifocal", varifocal, {f32}, i64, i64, coco, none, f32, no, no, kinks},
    {"kinks, mal", mal, {f16}, i64, i64, coco, none, of_queries(f32), no, no, kinks},
    {"kinks, mal, 0", mal, {f32}, i64, i64, coco, mean, f32, no, no, kinks, {}, 0},
    {"kinks, ia_bce", ia_bce, {f32}, i64, i64, coco, none, f32, no, no, kinks},
    {"kinks, ia_bce, alpha 1", ia_bce, {f64}, i64, i64, coco, none, f64, no, no, kinks, 1},
    {"kinks, bce", bce, {bf16}, i64, i64, coco, mean, f32, no, no, kinks},
    {"kinks, softmax", softmax, {f32}, i64, i64, coco, none, no, f32, no, kinks, {}, {}, 0.1},
    {"kinks, softmax, f64", softmax, {f64}, i64, i64, coco, none, no, no, no, kinks},
    // --- NaN and infinity
    {"special, focal", focal, {f32}, i64, i64, {2, 3, 37, 5, 23}, none, no, f32, no, special},
    {"special, focal, 1.5", focal, {bf16, planes}, i64, i64, {2, 3, 37, 5, 23}, none, no, no, no, special, -1, 1.5},
    {"special, varifocal", varifocal, {f16}, i64, i64, {2, 3, 37, 5, 23}, none, of_queries(f16), no, no, special},
    {"special, mal", mal, {f32}, i64, i64, {2, 3, 37, 5, 23}, none, f32, f32, no, special},
    {"special, ia_bce", ia_bce, {f64}, i64, i64, {2, 3, 37, 5, 23}, none, f32, no, no, special},
    {"special, bce", bce, {f32}, i64, i64, {2, 3, 37, 5, 23}, sum, f32, no, no, special},
    {"special, softmax", softmax, {f32}, i64, i64, {2, 3, 37, 5, 23}, none, no, no, no, special, {}, {}, 0.1},
};
// clang-format on

/// Of target_index and, since they are rows and classes, too, of labels: nine rows, five classes.
const IndexLists kEnds32 = {{-1, 0, 8, 9, -3, kMax32, kMin32}, {-2, 4, 5, -2, 3}, {-2}, {-1}};
const IndexLists kEnds64 = {{kMax64, 3, kMin64, kTwo32, 2, kTwo32 + 1},
                            {-kTwo32, 1, -kTwo32 - 2, 0, -2, kTwo32 - 1}};

/// Of those that divide, and that do not.
std::vector<ClassCase> with_indices(const std::vector<const char*>& names) {
  std::vector<ClassCase> list;
  for (const char* name : names) {
    const DType index = case_named(kCases, name).index;
    add_changed(list, kCases, {name}, small, kEnds32);
    if (index == i64) add_changed(list, kCases, {name}, small, kEnds64);
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].labels = list[i].index;
    if (i % 2 == 0) list[i].reduction = mean;
  }
  return list;
}

}  // namespace

const std::vector<ClassCase>& ClassLosses::table() { return kCases; }

std::vector<ClassCase> ClassLosses::further_cases() {
  std::vector<ClassCase> list = with_indices({"focal", "focal, f16", "bce", "softmax"});
  list.push_back(changed(kCases, "several tasks", {300, 1, 3, 2, 40}));  // more sets than a block
  list.push_back(changed(kCases, "softmax", {1, 1, 20011, 2, 40}));
  list.push_back(changed(kCases, "queries are neighbours, mean", {3, 300, 3, 7, 40}));
  list.push_back(changed(kCases, "mal", {1, 1, 2, 20011, 5}));  // a row of several tasks' logits
  return list;
}

/// All indices mean something; what is computed of them is compared above.
std::vector<ClassCase> ClassLosses::wild_cases() {
  return with_indices({"mal", "queries are neighbours", "special, softmax"});
}

std::vector<ClassCase> ClassLosses::cases_for_bits() {
  std::vector<ClassCase> list;
  add_changed(list, kCases, {"focal", "mean", "varifocal, bf16", "mean of weights"},
              {2, 3, 307, 80, 60}, {{}});
  add_changed(list, kCases, {"queries are neighbours", "queries are neighbours, mean"},
              {2, 3, 5003, 5, 60}, {{}});
  return list;
}

ClassCase ClassLosses::random_case(Random& random) {
  ClassCase c;
  c.mode = random.pick(std::vector<ClassLoss>{focal, varifocal, mal, ia_bce, bce, softmax});
  c.logits = {any_floating(random), any_layout(random), random.chance(0.2)};
  if (random.chance(0.2)) c.logits.layout = planes;
  c.index = any_index(random);
  c.labels = any_index(random);
  c.shape = {random.below(4), random.below(4), random.below(random.chance(0.2) ? 300 : 20),
             random.below(12), random.below(20)};
  if (random.chance(0.1)) c.shape.classes = 60 + random.below(250);
  c.reduction = random.pick(std::vector<Reduction>{none, sum, mean});
  const bool has_focus = c.mode != bce && c.mode != softmax;
  const bool has_quality = c.mode != focal && c.mode != softmax;
  if (has_quality && (c.mode != bce || random.chance(0.7))) {
    c.quality = CaseQuality(any_floating(random), random.chance(0.5));
  }
  if (random.chance(0.5)) c.weight = any_floating(random);
  if (c.reduction == mean && random.chance(0.4)) {
    c.normalizer = {random.pick(std::vector<DType>{f64, f32, i64, i32}), random.below(2)};
  }
  c.values = random.pick(std::vector<Values>{plain, kinks, special});
  if (has_focus && random.chance(0.6)) {
    // With alpha 0, ia_bce has (sigmoid of -infinity)^0, which only a power has.
    const bool is_zero_fine = c.mode != ia_bce || c.values != special;
    c.alpha = random.pick(std::vector<double>{is_zero_fine ? 0.0 : 0.5, 0.25, 0.3, 1});
    if (c.mode == focal && random.chance(0.3)) c.alpha = -1;
    c.gamma = random.pick(std::vector<double>{0, 1, 1.5, 2, 3.5});
  }
  if (c.mode == softmax) {
    c.no_object_weight = random.pick(std::vector<double>{0, 0.1, 1});
    if (c.shape.classes == 0) c.shape.classes = 1;
  }
  return c;
}

std::string ClassLosses::describe(const ClassCase& c) {
  std::string text =
      in_words(c.mode, "logits", c.logits.dtype, c.logits.layout, c.logits.is_one_set, "index",
               c.index, c.labels, "shape", c.shape.sets, c.shape.images, c.shape.queries,
               c.shape.classes, c.shape.targets, c.reduction, "weight", c.weight, "values",
               c.values, "alpha", c.alpha, "gamma", c.gamma, "no object", c.no_object_weight);
  if (c.quality) text += in_words("quality", c.quality->dtype, c.quality->is_of_queries);
  if (c.normalizer) text += in_words("normalizer", c.normalizer->dtype, c.normalizer->stride);
  return text;
}

}  // namespace boxloss::conformance
