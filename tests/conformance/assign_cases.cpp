// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <utility>

#include "assign.hpp"
#include "index_arrays.hpp"

namespace boxloss::conformance {
namespace {

using namespace words;

constexpr Costs real = Costs::kReal, integers = Costs::kIntegers, tenths = Costs::kTenths,
                equal = Costs::kEqual, duplicates = Costs::kDuplicates, huge = Costs::kHuge,
                overflow = Costs::kOverflow;
constexpr Special finite = Special::kNone, nan_queries = Special::kNanQueries,
                  forbidden_columns = Special::kForbiddenColumns, forbidden = Special::kForbidden,
                  all_forbidden = Special::kAllForbidden, minus_infinity = Special::kMinusInfinity,
                  mixed = Special::kMixed, all_mixed = Special::kAllMixed;
constexpr Goal least = Goal::kLeast, greatest = Goal::kGreatest, limited = Goal::kLimited;
constexpr Ragged by_lengths = Ragged::kLengths, whole = Ragged::kNothing;

// clang-format off
const std::vector<AssignCase> kCases = {
    // name, cost, layout, offsets, index, {layers, images, queries, columns, groups}, costs, special, indices, goal, ragged
    // --- shapes of the matrix
    {"more columns than queries in one image", f32, packed, i32, i64, {2, 3, 6, 20}, real, finite, {0, 2, 14, 20}},
    {"as many columns as queries in one image", f32, packed, i64, i32, {2, 3, 6, 20}, real, finite, {3, 9, 10, 20}},
    {"33 columns", f32, packed, i64, i64, {1, 2, 33, 66}, real, finite, {0, 33, 66}},
    {"65 columns", f32, packed, i64, i64, {1, 2, 70, 129}, integers, finite, {0, 65, 129}},
    // --- dtypes: any two of them in each way
    {"f32 i64 i32", f32, packed, i64, i32, {3, 3, 9, 17}, real},
    {"f32 i64 i64", f32, packed, i64, i64, {3, 3, 9, 17}, real},
    {"f64 i32 i32", f64, packed, i32, i32, {3, 3, 9, 17}, real},
    // --- ties
    {"integers, tall", f32, packed, i64, i64, {3, 2, 40, 30}, integers},
    {"tenths, mixed", f64, packed, i64, i64, {3, 2, 25, 50}, tenths, mixed},
    // --- what is not finite
    {"mixed among ties", f64, packed, i32, i32, {3, 2, 25, 30}, integers, mixed},
    // --- sizes of numbers
    {"huge, mixed", f32, packed, i64, i64, {2, 2, 15, 17}, huge, mixed},
    // --- images without columns, and columns without an image
    {"columns of no image", f64, wide, i32, i32, {2, 2, 5, 40}, integers, finite, {11, 13, 29}},
    // --- large
    {"many queries, one column", f32, packed, i64, i64, {1, 1, 20011, 1}, real, finite, {0, 1}},
    {"many columns", f32, packed, i64, i64, {1, 2, 2, 20011}, integers, mixed, {0, 7, 20000}},
    {"more queries than 16 bits count", f32, planes, i32, i32, {1, 1, 66000, 1}, real, finite, {0, 1}},
    {"300 queries, 150 columns, mixed", f32, packed, i64, i64, {1, 1, 300, 150}, integers, mixed, {0, 150}},
    {"1000 columns", f32, packed, i64, i64, {1, 1, 60, 1000}, integers, finite, {0, 1000}},
    {"1000 queries", f64, planes, i64, i64, {1, 1, 1000, 60}, duplicates, finite, {0, 60}},
    {"150 of each", f64, packed, i64, i64, {1, 1, 150, 150}, integers, finite, {0, 150}},
    // --- a GPU's shared memory has room for all of a task, or all but its costs, or for neither
    {"140 queries", f32, packed, i64, i64, {1, 4, 140, 24}, integers, mixed, {0, 3, 3, 15, 24}},
    {"150 queries, f64", f64, apart, i32, i64, {2, 1, 150, 8}, real, finite, {0, 8}},
    {"155 columns", f32, apart, i64, i64, {1, 3, 14, 297, 2}, real, mixed, {0, 155, 155, 295}},
    {"155 columns, f64", f64, packed, i32, i32, {1, 3, 14, 297, 2}, integers, finite, {0, 155, 155, 295}},
    {"260 queries", f32, packed, i32, i32, {1, 4, 260, 96}, integers, finite, {0, 4, 94, 94, 95}},
    {"260 queries, f64", f64, planes, i64, i64, {1, 4, 260, 96}, integers, mixed, {0, 4, 94, 94, 95}},
    {"many images", f32, packed, i64, i64, {1, 600, 3, 700}, integers},
    {"many columns in one of many images", f32, packed, i64, i64, {1, 5, 3, 300}, integers, mixed, {0, 290, 290, 295, 299, 300}},
    {"many layers", f32, packed, i32, i32, {600, 1, 2, 3, 2}, real, finite, {0, 2}},
    {"many groups", f32, packed, i32, i32, {2, 2, 300, 3, 300}, real, finite, {0, 2, 3}},
    // --- other costs and goals
    {"int64, greatest", i64, wide, i64, i64, {3, 2, 9, 17}, integers, finite, {}, greatest},
    {"f16, 40 of each", f16, packed, i64, i64, {2, 1, 40, 40}, real, finite, {}, least, whole},
    {"limited, mixed", f64, packed, i64, i64, {3, 2, 9, 17}, integers, mixed, {}, limited},
    {"limited, tenths", f32, packed, i64, i64, {3, 2, 9, 17}, tenths, mixed, {}, limited},
    {"limited, tenths in pairs", f32, packed, i64, i64, {400, 1, 2, 2}, tenths, finite, {}, limited, whole},
    {"limited, tenths of bf16", bf16, packed, i64, i64, {400, 1, 2, 2}, tenths, finite, {}, limited, whole},
    // --- matrices alone
    {"wide matrices by column", f64, planes, i64, i64, {5, 1, 9, 17}, integers, finite, {}, least, whole},
    {"300 columns, greatest", f32, packed, i64, i64, {2, 1, 300, 300}, real, finite, {}, greatest, whole},
    {"lengths", f32, packed, i64, i64, {20, 1, 9, 17}, real, finite, {}, least, by_lengths},
    {"lengths, limited", f32, packed, i32, i32, {20, 1, 17, 9}, integers, mixed, {}, limited, by_lengths},
    {"600 columns, lengths", f64, packed, i64, i64, {2, 1, 40, 600}, integers, finite, {40, 600, 7, 513}, least, by_lengths},
    {"many matrices", f32, packed, i32, i32, {3000, 1, 4, 4}, integers, finite, {}, least, whole},
};
// clang-format on

constexpr AssignShape kSmall = {2, 3, 8, 20, 2};

}  // namespace

const std::vector<AssignCase>& Assign::table() { return kCases; }

MoreCases<AssignCase> Assign::more_cases() {
  MoreCases<AssignCase> more;
  std::vector<AssignCase>& list = more.further;
  add_changed(list, kCases, {"f32 i64 i64", "f32 i64 i32"}, kSmall, wrong_offsets(i64));
  add_changed(list, kCases, {"f64 i32 i32"}, kSmall, wrong_offsets(i32));
  // Wrong at one image of more than a GPU's block has threads.
  for (const auto& [at, offset] : std::vector<std::pair<std::size_t, std::int64_t>>{
           {0, -1}, {3, 5}, {3, 1}, {139, kTwo32}, {290, -kTwo32}, {300, 298}, {300, 301}}) {
    std::vector<std::int64_t> offsets(301);
    std::iota(offsets.begin(), offsets.end(), 0);
    offsets[at] = offset;
    list.push_back(changed(kCases, "f32 i64 i64", {2, 300, 6, 300, 2}, offsets));
  }
  for (const std::vector<std::int64_t>& lengths :
       std::vector<std::vector<std::int64_t>>{{4, 5, -1, 5, 4, 5},
                                              {4, -1, 4, 5, 0, 0},
                                              {5, 5, 4, 5, 4, 6},
                                              {kTwo32, 5, 4, kTwo32, 4, 5}}) {
    AssignCase c = {"lengths outside", f64, packed, i64, i64, {3, 1, 4, 5}, real, finite, lengths};
    c.ragged = by_lengths;
    list.push_back(c);
  }
  // Sums that overflow, which all implementations form in one order. There are many tasks, since
  // few of them tell inf - inf from 0.
  for (const Special special : {finite, nan_queries, forbidden, minus_infinity, mixed}) {
    for (const AssignShape& shape :
         {AssignShape{8, 4, 24, 40, 2}, {8, 2, 12, 60, 3}, {9, 5, 8, 30}}) {
      list.push_back({"overflow", f64, packed, i64, i64, shape, overflow, special});
    }
  }
  add_changed(more.for_bits, kCases, {"integers, tall", "mixed among ties", "columns of no image"},
              {3, 5, 24, 70, 2}, {{3, 20, 20, 33, 60, 67}});
  return more;
}

AssignCase Assign::random_case(Random& random) {
  AssignCase c;
  c.cost = random.pick(std::vector<DType>{f32, f32, f64, f64, f16, bf16, u8, i16, i32, i64});
  c.layout = random.chance(0.1) ? one_coordinate : any_layout(random);
  c.offsets = any_index(random);
  c.index = any_index(random);
  const std::int64_t groups = random.pick(std::vector<std::int64_t>{1, 1, 1, 2, 3, 13});
  const std::int64_t most = random.chance(0.2) ? 40 : 12;  // in all tall or wide
  c.shape = {random.below(4), random.below(5), groups * random.below(most), random.below(40),
             groups};
  c.costs =
      random.pick(std::vector<Costs>{real, integers, tenths, equal, duplicates, huge, overflow});
  c.special =
      random.pick(std::vector<Special>{finite, finite, finite, nan_queries, forbidden_columns,
                                       forbidden, all_forbidden, minus_infinity, mixed, all_mixed});
  if (size_of(c.cost) < 4 || !is_floating(c.cost)) {  // which have no numbers so large
    c.costs = random.pick(std::vector<Costs>{real, integers, equal, duplicates});
  }
  if (!is_floating(c.cost)) c.special = finite;
  c.goal = random.pick(std::vector<Goal>{least, least, greatest, limited});
  if (random.chance(0.4)) {
    c.shape.images = c.shape.groups = 1;
    c.ragged = random.pick(std::vector<Ragged>{by_lengths, by_lengths, whole});
  }
  return c;
}

std::string Assign::describe(const AssignCase& c) {
  const auto& [layers, images, queries, columns, groups] = c.shape;
  return in_words(c.cost, "layout", c.layout, "offsets", c.offsets, "index", c.index, "shape",
                  layers, images, queries, columns, groups, "costs", c.costs, "special", c.special,
                  "goal", c.goal, "ragged", c.ragged);
}

}  // namespace boxloss::conformance
