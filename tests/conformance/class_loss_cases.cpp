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
constexpr ClassShape coco = {2, 3, 37, 80, 23}, small = {2, 3, 21, 5, 9};

// CPU tasks are 16384 logits, tiles 240; a GPU's packs have up to 16, its rows 32 lanes.
// clang-format off
const std::vector<ClassCase> kCases = {
    // name, mode, logits, index, labels, {sets, images, queries, classes, targets}, reduction, quality, weight, normalizer, values, alpha, gamma, no_object_weight
    // --- modes
    {"focal", focal, {f32}, i64, i64, coco, none, no, no, no, plain},
    {"mal", mal, {f32}, i64, i64, coco, none, f32, no, no, plain},
    {"bce", bce, {f32}, i64, i64, coco, none, of_queries(f32), no, no, plain},
    {"softmax", softmax, {f32}, i64, i64, coco, none, no, no, no, plain, {}, {}, 0.1},
    // --- their numbers, in halves and doubles
    {"focal, f16", focal, {f16}, i32, i64, coco, sum, no, f32, no, plain, 0.3, 1.5},
    {"varifocal, bf16", varifocal, {bf16}, i32, i32, coco, mean, f64, bf16, no, plain, 1.3, 0},
    // --- means
    {"mean", focal, {f32}, i64, i64, coco, mean, no, no, no, plain},
    {"mean of weights", softmax, {f32}, i64, i64, coco, mean, no, f32, no, plain, {}, {}, 0.1},
    // --- layouts
    {"queries are neighbours", focal, {f32, planes}, i64, i64, {2, 2, 259, 5, 40}, none, no, f32, no, plain},
    {"queries are neighbours, mean", varifocal, {f16, planes}, i64, i64, {2, 2, 259, 5, 40}, mean, of_queries(f32), f32, no, plain},
    {"sets do not begin with packs", focal, {f32, odd_gaps}, i64, i64, {3, 1, 6, 8, 4}, mean, no, no, no, plain},
    {"one logit", focal, {f32, one_coordinate}, i64, i64, small, none, no, f32, no, plain},
    // --- a GPU's packs: of two rows, and one in each set
    {"packs of two rows, bce", bce, {f32}, i64, i64, {3, 2, 40, 81, 23}, sum, of_queries(f32), no, no, kinks},
    {"packs of two rows, varifocal", varifocal, {bf16}, i32, i32, {3, 1, 32, 17, 9}, mean, of_queries(f32), no, no, plain},
    {"a pack of special values, f32", bce, {f32}, i64, i64, {60, 1, 1, 8, 9}, sum, no, no, no, special},
    {"a pack of special values, f16", bce, {f16}, i64, i64, {60, 1, 1, 16, 9}, mean, no, no, no, special},
    // --- sizes
    {"two tiles of classes", focal, {f32}, i64, i64, {1, 2, 9, 365, 20}, none, no, f32, no, plain},
    {"two tiles of classes, softmax", softmax, {f32}, i64, i64, {1, 2, 9, 365, 20}, none, no, no, no, plain},
    {"several tasks", focal, {f32}, i64, i64, {2, 2, 301, 80, 60}, mean, no, f32, no, plain},
    {"several tasks, none", ia_bce, {f32}, i64, i64, {1, 2, 301, 80, 60}, none, of_queries(f32), no, no, plain},
    {"several tasks, softmax", softmax, {f16}, i64, i64, {1, 2, 301, 80, 60}, mean, no, f32, no, plain, {}, {}, 0.1},
    {"several tasks, queries are neighbours", bce, {f32, planes}, i64, i64, {1, 2, 1500, 11, 60}, mean, f32, no, no, plain},
    // --- NaN and infinity
    {"special, focal", focal, {f32}, i64, i64, {2, 3, 37, 5, 23}, none, no, f32, no, special},
    {"special, softmax", softmax, {f32}, i64, i64, {2, 3, 37, 5, 23}, none, no, no, no, special, {}, {}, 0.1},
};
// clang-format on

std::vector<ClassCase> with_labels(const std::vector<const char*>& names) {
  std::vector<ClassCase> list = with_indices(kCases, names);
  for (ClassCase& c : list) c.labels = c.index;
  return list;
}

}  // namespace

const std::vector<ClassCase>& ClassLosses::table() { return kCases; }

MoreCases<ClassCase> ClassLosses::more_cases() {
  MoreCases<ClassCase> more;
  more.further = with_labels({"focal", "focal, f16", "bce", "softmax"});
  const auto add_further = [&](const char* name, const ClassShape& shape) {
    more.further.push_back(changed(kCases, name, shape));
  };
  add_further("several tasks", {300, 1, 3, 2, 40});  // more sets than a block
  add_further("softmax", {1, 1, 20011, 2, 40});
  add_further("queries are neighbours, mean", {3, 300, 3, 7, 40});
  add_further("mal", {1, 1, 2, 20011, 5});  // a row of several tasks' logits
  // All indices mean something; what is computed of them is compared above.
  more.wild = with_labels({"mal", "queries are neighbours", "special, softmax"});
  add_changed(more.for_bits, kCases, {"focal", "mean", "varifocal, bf16", "mean of weights"},
              {2, 3, 307, 80, 60}, {{}});
  add_changed(more.for_bits, kCases, {"queries are neighbours", "queries are neighbours, mean"},
              {2, 3, 5003, 5, 60}, {{}});
  return more;
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
  if (random.chance(0.1)) {
    c.shape.queries = random.below(20);
    c.shape.classes = 60 + random.below(250);
  }
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
