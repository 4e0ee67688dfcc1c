// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "distribution_loss.hpp"
#include "index_arrays.hpp"

namespace boxloss::conformance {
namespace {

using namespace words;

constexpr DistributionLoss fgl = DistributionLoss::kFgl, ddf = DistributionLoss::kDdf;
constexpr Reduction none = Reduction::kNone, sum = Reduction::kSum, mean = Reduction::kMean;
constexpr std::nullopt_t no = std::nullopt;
constexpr CaseLogits one_set(DType dtype) { return {dtype, packed, true}; }
constexpr DistributionShape d_fine = {2, 3, 37, 33, 9};

// CPU tasks are 16384 logits, tiles 240; a GPU's tiles are up to 32 queries, fewer for many bins.
// clang-format off
const std::vector<DistributionCase> kCases = {
    // name, mode, logits, teacher or boxes, index, {sets, images, queries, bins, targets}, reduction, quality, normalizer, values, reg_scale or temperature
    // --- modes and dtypes
    {"fgl", fgl, f32, f32, i64, d_fine, none, f32, no, plain, 4},
    {"fgl, f16", fgl, f16, f32, i32, d_fine, mean, f16, no, plain, 8},
    {"fgl, bf16", fgl, bf16, bf16, i64, d_fine, sum, no, no, plain, 4},
    {"ddf", ddf, f32, one_set(f32), i64, d_fine, none, f32, no, plain, 5},
    {"ddf, f16", ddf, f16, one_set(f16), i32, d_fine, mean, f32, no, plain, 5},
    {"ddf, bf16", ddf, bf16, bf16, i64, d_fine, sum, bf16, no, plain, 1},
    {"ddf, two dtypes", ddf, f16, one_set(f32), i64, d_fine, mean, no, no, plain, 5},
    // --- means
    {"fgl, mean", fgl, f32, f32, i64, d_fine, mean, f32, no, plain, 4},
    {"ddf, mean", ddf, f32, one_set(f32), i64, d_fine, mean, f32, no, plain, 5},
    {"ddf, all are matched", ddf, f32, one_set(f32), i64, d_fine, mean, f32, no, plain, 5, {0, 3}},
    {"ddf, none is matched", ddf, f32, one_set(f32), i64, d_fine, mean, f32, no, plain, 5, {-1}},
    {"ddf, all are left out", ddf, f32, one_set(f32), i64, d_fine, mean, f32, no, plain, 5, {-2}},
    // --- sizes
    {"fgl, two tiles of bins", fgl, f32, f32, i64, {1, 2, 9, 251, 9}, none, f32, no, plain, 4},
    {"ddf, two tiles of bins", ddf, f32, f32, i64, {1, 2, 9, 251, 9}, none, f32, no, plain, 5},
    {"ddf, beyond shared memory", ddf, f32, one_set(f32), i64, {1, 2, 3, 3001, 9}, mean, f32, no, plain, 5},
    {"fgl, several tasks", fgl, f32, f32, i64, {2, 2, 161, 33, 60}, mean, f32, no, plain, 4},
    {"ddf, several tasks", ddf, f32, one_set(f32), i64, {2, 2, 161, 33, 60}, mean, f32, no, plain, 5},
    // --- sides on edges and beyond
    {"kinks, fgl", fgl, f32, f32, i64, {2, 3, 37, 17, 9}, none, f32, no, kinks, 4},
    // --- NaN and infinity
    {"special, fgl", fgl, f32, f32, i64, {2, 3, 37, 5, 23}, none, f32, no, special, 4},
};
// clang-format on

}  // namespace

const std::vector<DistributionCase>& DistributionLosses::table() { return kCases; }

MoreCases<DistributionCase> DistributionLosses::more_cases() {
  MoreCases<DistributionCase> more;
  more.further = with_indices(kCases, {"fgl", "fgl, f16", "ddf", "ddf, f16"});
  const auto add_further = [&](const char* name, const DistributionShape& shape) {
    more.further.push_back(changed(kCases, name, shape));
  };
  add_further("ddf, mean", {300, 1, 3, 2, 40});  // more sets than a block
  add_further("fgl, mean", {1, 1, 5003, 2, 40});
  add_further("ddf, mean", {2, 300, 3, 7, 40});
  // All indices mean something; what is computed of them is compared above.
  more.wild = with_indices(kCases, {"fgl, bf16", "ddf, two dtypes", "special, fgl"});
  add_changed(more.for_bits, kCases, {"fgl", "fgl, mean", "ddf, bf16", "ddf, mean"},
              {2, 3, 307, 33, 60}, {{}});
  return more;
}

DistributionCase DistributionLosses::random_case(Random& random) {
  const auto corners = [&](DType dtype) {
    const Layout layout = random.pick(std::vector<Layout>{
        packed, packed, packed, wide, gaps, odd_gaps, shifted, one_image, one_box, transposed});
    return CaseLogits(dtype, layout, random.chance(0.5));
  };
  const DistributionLoss mode = random.chance(0.5) ? fgl : ddf;
  const DType dtype = any_floating(random);
  const bool is_fgl = mode == fgl;
  DistributionCase c = {
      "",
      mode,
      corners(dtype),
      corners(random.chance(0.7) ? dtype : any_floating(random)),
      any_index(random),
      {random.below(4), random.below(4), random.below(random.chance(0.2) ? 70 : 12),
       2 + random.below(random.chance(0.2) ? 40 : 12), random.below(20)},
      random.pick(std::vector<Reduction>{none, sum, mean}),
      no,
      no,
      random.pick(std::vector<Values>{plain, kinks, special}),
      random.pick(is_fgl ? std::vector<double>{4, 8, 2.5} : std::vector<double>{5, 1, 3})};
  if (!is_fgl && random.chance(0.1)) c.shape.bins = 1;
  if (random.chance(0.7)) c.quality = any_floating(random);
  if (is_fgl && c.reduction == mean && random.chance(0.4)) {
    c.normalizer = {random.pick(std::vector<DType>{f64, f32, i64, i32}), random.below(2)};
  }
  return c;
}

std::string DistributionLosses::describe(const DistributionCase& c) {
  std::string text =
      in_words(c.mode, "logits", c.logits.dtype, c.logits.layout, c.logits.is_one_set, "others",
               c.others.dtype, c.others.layout, c.others.is_one_set, "index", c.index, "shape",
               c.shape.sets, c.shape.images, c.shape.queries, c.shape.bins, c.shape.targets,
               c.reduction, "quality", c.quality, "values", c.values, "number", c.number);
  if (c.normalizer) text += in_words("normalizer", c.normalizer->dtype, c.normalizer->stride);
  return text;
}

}  // namespace boxloss::conformance
