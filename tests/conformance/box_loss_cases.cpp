// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss.hpp"

#include "index_arrays.hpp"

namespace boxloss::conformance {
namespace {

using namespace words;

constexpr CasePairing dense = {Pairing::Kind::kDense, u8},
                      zero_padded = {Pairing::Kind::kZeroPadded, u8},
                      mask = {Pairing::Kind::kMask, u8}, lengths32 = {Pairing::Kind::kLengths, i32},
                      lengths64 = {Pairing::Kind::kLengths, i64},
                      offsets32 = {Pairing::Kind::kOffsets, i32},
                      offsets64 = {Pairing::Kind::kOffsets, i64};
constexpr std::nullopt_t no = std::nullopt;
constexpr CasePairing preds32 = {Pairing::Kind::kIndexed, u8, i32, no},
                      preds64 = {Pairing::Kind::kIndexed, u8, i64, no},
                      targets32 = {Pairing::Kind::kIndexed, u8, no, i32},
                      targets64 = {Pairing::Kind::kIndexed, u8, no, i64},
                      both32 = {Pairing::Kind::kIndexed, u8, i32, i32},
                      both64 = {Pairing::Kind::kIndexed, u8, i64, i64},
                      mixed32 = {Pairing::Kind::kIndexed, u8, i32, i64},
                      mixed64 = {Pairing::Kind::kIndexed, u8, i64, i32};
constexpr Reduction none = Reduction::kNone, sum = Reduction::kSum, mean = Reduction::kMean;

constexpr CaseNormalizer by_set(DType dtype) { return {dtype, 1}; }

// CPU tasks are 8192 slots, GPU blocks a power of two: sizes lie on both sides of these.
// clang-format off
const std::vector<LossCase> kCases = {
    // name, pairing, pred, target, {images, slots, rows}, reduction, weight, normalizer, eps, values
    // --- dtypes: the pairs with their own loops
    {"f32 f32", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 33, 0}, none, no, no, add, plain},
    {"f16 f32", lengths32, {f16, xyxy, packed}, {f32, xyxy, packed}, {3, 33, 0}, none, f16, no, clamp, plain},
    {"bf16 u8", offsets32, {bf16, xyxy, packed}, {u8, xyxy, packed}, {3, 33, 70}, none, f64, no, add, plain},
    {"f16 i32", lengths64, {f16, xyxy, packed}, {i32, xywh, packed}, {2, 31, 0}, sum, f32, no, add, plain},
    {"f32 i64", offsets64, {f32, xywh, packed}, {i64, xyxy, packed}, {4, 31, 90}, mean, f32, no, add, plain},
    // --- reductions and normalizers
    {"mean by f64", mask, {f32, xyxy, packed}, {f32, xyxy, packed}, {2, 257, 0}, mean, no, f64, add, plain},
    {"mean by f32", offsets64, {f32, xyxy, packed}, {f32, xyxy, packed}, {2, 257, 400}, mean, f32, f32, add, plain},
    {"mean by i64", lengths64, {f32, xyxy, packed}, {f32, xyxy, packed}, {2, 257, 0}, mean, f32, i64, add, plain},
    // --- layouts: coordinates that are not neighbours
    {"one coordinate", dense, {f32, xyxy, one_coordinate}, {f32, xyxy, packed}, {2, 33, 0}, none, no, no, add, kinks},
    {"planes of one slot", dense, {f32, xyxy, planes}, {f32, xyxy, packed}, {300, 1, 0}, none, f32, no, add, plain},
    {"planes, several tasks", lengths64, {f32, xyxy, planes}, {f32, xyxy, planes}, {2, 9001, 0}, none, f32, no, add, plain},
    // --- sizes
    {"several tiles and a long tail", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 1836, 0}, sum, no, no, add, plain},
    {"many images of one slot, pred's gaps", dense, {f32, xyxy, gaps}, {f32, xyxy, packed}, {9000, 1, 0}, none, f32, no, add, plain},
    {"many images of one slot, lengths", lengths64, {f32, xyxy, packed}, {f32, xyxy, packed}, {9000, 1, 0}, mean, no, no, add, plain},
    {"many images of one slot, ragged", offsets32, {f16, xyxy, packed}, {f32, xyxy, packed}, {9000, 1, 9500}, none, f32, no, add, plain},
    {"several tasks", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 16391, 0}, none, no, no, add, plain},
    {"several tasks, sum", mask, {bf16, xyxy, packed}, {u8, xyxy, packed}, {5, 4099, 0}, sum, f32, no, add, plain},
    {"several tasks, gaps", zero_padded, {f32, xyxy, gaps}, {f32, xyxy, gaps}, {3, 8191, 0}, mean, f32, no, add, plain},
    {"several tasks, lengths", lengths32, {f16, xyxy, packed}, {f32, xyxy, packed}, {2, 9001, 0}, none, f16, no, clamp, plain},
    {"several tasks, ragged", offsets64, {f64, xyxy, packed}, {f64, xyxy, packed}, {2, 9001, 20011}, none, no, no, add, plain},
    {"more slots than rows", offsets32, {f32, xyxy, packed}, {f32, xyxy, packed}, {2, 9001, 7}, sum, f32, no, add, plain},
    // --- kinks
    {"kinks", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 257, 0}, none, no, no, add, kinks},
    {"kinks, eps 0", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 257, 0}, none, no, no, add_0, kinks},
    {"kinks, clamped to 0", dense, {f32, xyxy, packed}, {u8, xyxy, packed}, {3, 257, 0}, none, f32, no, clamp_0, kinks},
    {"kinks at eps", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 257, 0}, none, f32, no, clamp_4, kinks},
    {"kinks, f64", lengths32, {f64, xywh, packed}, {i64, xyxy, packed}, {3, 257, 0}, none, f64, no, add, kinks},
    // --- NaN and infinity
    {"special", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 257, 0}, none, no, no, add, special},
    {"special, clamped", mask, {f32, xyxy, packed}, {f32, cxcywh, packed}, {3, 257, 0}, none, f32, no, clamp, special},
    {"special, f64", zero_padded, {f64, xyxy, packed}, {f64, xyxy, packed}, {3, 257, 0}, none, f64, no, add_0, special},
    {"special, bf16", offsets32, {bf16, cxcywh, packed}, {f32, xyxy, packed}, {3, 257, 600}, none, bf16, no, clamp, special},
    {"special, mean", mask, {bf16, xyxy, packed}, {bf16, xyxy, packed}, {3, 257, 0}, mean, f32, f32, clamp, special},
    // --- pairs by index; the shape goes on with sets and pairs
    {"targets by index", targets32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 0, 50, 1, 40}, none, f32, no, add, plain},
    {"both by index", both32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 50, 20, 1, 40}, none, f32, no, add, plain},
    {"both by index, int64", both64, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 50, 20, 1, 40}, none, f32, no, add, plain},
    {"both by index, sets", both32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 50, 20, 5, 40}, mean, f32, no, add, plain},
    {"int32 meets int64", mixed32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 50, 20, 2, 40}, none, no, no, add, plain},
    // --- pairs by index: dtypes
    {"indexed bf16 f32", both32, {bf16, xyxy, packed}, {f32, xyxy, packed}, {1, 90, 60, 2, 31}, none, f32, no, add, plain},
    {"indexed bf16 u8", mixed32, {bf16, xyxy, packed}, {u8, xyxy, packed}, {1, 90, 60, 2, 31}, none, f64, no, add, plain},
    // --- pairs by index: reductions and normalizers
    {"indexed, mean by f64", both64, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 50, 20, 3, 90}, mean, no, f64, add, plain},
    {"indexed, mean by i32 of each set", targets64, {f64, xyxy, packed}, {f64, xyxy, packed}, {1, 0, 40, 4, 90}, mean, f64, by_set(i32), add, plain},
    // --- pairs by index: sizes
    {"more pairs than one block takes", both32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 2000, 2000, 1, 1300}, sum, f32, no, add, plain},
    {"sets of several blocks, f64", both64, {f64, xyxy, packed}, {f64, xyxy, packed}, {1, 700, 2000, 2, 2111}, mean, f64, by_set(f32), add, plain},
    {"many sets of few pairs", both32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 90, 80, 40, 3}, mean, f32, no, add, plain},
    {"indexed, several tasks", both32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 9000, 5000, 2, 8200}, mean, f32, no, add, plain},
    {"indexed, several tasks, none", preds64, {f16, xyxy, packed}, {f32, xyxy, packed}, {1, 40000, 0, 1, 16391}, none, no, no, add, plain},
    {"long lists", both32, {f32, xyxy, packed}, {f32, xyxy, packed}, {2, 20000, 40000, 2, 300}, none, f32, no, add, plain},
    // --- pairs by index: rows of many pairs
    {"many pairs on few rows", both32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 3, 5, 2, 700}, sum, f32, no, add, plain},
    {"many pairs on one row", targets64, {f64, xyxy, packed}, {f64, xyxy, packed}, {1, 0, 1, 1, 300}, none, no, no, add, plain},
    {"some pairs on each row, bf16", both32, {bf16, xyxy, packed}, {bf16, xyxy, packed}, {1, 60, 40, 2, 130}, sum, no, no, add, plain},
    {"some pairs on each row, f16", both32, {f16, xyxy, packed}, {f16, xyxy, packed}, {1, 60, 40, 2, 130}, none, f32, no, add, plain},
    // --- pairs by index: kinks, where sums are exact
    {"indexed, kinks", both32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 90, 70, 2, 257}, none, no, no, add, kinks},
    {"indexed, kinks, few rows", both32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 9, 7, 2, 257}, sum, f32, no, clamp_4, kinks},
    {"indexed, kinks, bf16", both64, {bf16, xyxy, packed}, {bf16, xyxy, packed}, {1, 60, 50, 2, 257}, none, no, no, clamp_4, kinks},
    {"indexed, kinks, f16", both32, {f16, cxcywh, packed}, {f16, cxcywh, packed}, {1, 60, 50, 2, 257}, sum, f16, no, clamp_4, kinks},
    // --- pairs by index: NaN and infinity
    {"indexed, special", both32, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 600, 500, 2, 257}, none, no, no, add, special},
    {"indexed, special, f64", both32, {f64, xyxy, packed}, {f64, xyxy, packed}, {1, 300, 300, 2, 257}, none, f64, no, add_0, special},
    {"indexed, special, mean", both32, {bf16, xyxy, packed}, {f32, xyxy, packed}, {1, 600, 500, 60, 5}, mean, f32, by_set(f32), clamp, special},
};
// clang-format on

/// For rotated boxes: in degrees where boxes are not corners.
PairCase<RotatedLoss> rotated(const LossCase& c) {
  const AngleUnit unit = c.pred.format == xyxy ? AngleUnit::kRadians : AngleUnit::kDegrees;
  return {c.name,      c.pairing,          c.pred,       c.target, c.shape,
          c.reduction, c.weight,           c.normalizer, c.eps,    c.values,
          c.indices,   RotatedLoss::kGiou, unit};
}

/// The table, and what is made from it, for a kind of boxes.
template <class Enum>
std::vector<PairCase<Enum>> cases_for(const std::vector<LossCase>& list) {
  if constexpr (std::is_same_v<Enum, Loss>) return list;
  std::vector<PairCase<Enum>> all;
  if constexpr (std::is_same_v<Enum, RotatedLoss>) {
    for (const LossCase& c : list) all.push_back(rotated(c));
  }
  return all;
}

LossCase with_reduction(LossCase c, Reduction reduction) {
  c.reduction = reduction;
  return c;
}

/// The dtypes of pred and target that have loops of their own.
const std::vector<std::pair<DType, DType>> kOwnLoops = {{f32, f32},   {bf16, f32}, {f16, f32},
                                                        {bf16, bf16}, {bf16, u8},  {f16, u8},
                                                        {f32, u8},    {f64, f64}};

constexpr Shape kSmall = {3, 7, 20, 3, 40};

std::vector<LossCase> further() {
  std::vector<LossCase> list = {// Lists of more rows than one task takes.
                                changed(kCases, "indexed bf16 f32", {2, 300007, 1000, 2, 400}),
                                // More sets than a GPU has blocks.
                                changed(kCases, "both by index, sets", {1, 900, 700, 1400, 3}),
                                changed(kCases, "targets by index", {1, 0, 900, 1400, 3})};
  add_changed(list, kCases, {"bf16 u8", "f32 i64"}, kSmall, kOffsetsOutOfRange);
  // Nothing counts, by lengths, offsets and rows; normalizers are 0.
  list.push_back(changed(kCases, "mean by i64", kSmall, {0, 0, 0}));
  list.push_back(changed(kCases, "mean by f32", kSmall, {5, 5, 5, 5}));
  list.push_back(changed(kCases, "indexed, mean by f64", kSmall, {-1}));
  list.push_back(changed(kCases, "indexed, mean by i32 of each set", kSmall, {-1}));
  // Pairs whose rows are not in their lists, of 3 * 7 preds and 3 * 20 targets, do not count.
  const auto add_rows = [&](const char* name, const std::vector<std::int64_t>& rows) {
    for (const Reduction reduction : {none, mean}) {
      list.push_back(with_reduction(changed(kCases, name, kSmall, rows), reduction));
    }
  };
  for (const char* name : {"both by index", "both by index, int64", "indexed bf16 u8"}) {
    add_rows(name, {0, 20, -1, 3, 21, 59, 60, 5});
    add_rows(name, {kMin32, 0, kMax32});
    add_rows(name, {-1, -21, -60, kMin32, kMax32, 1000});
  }
  add_rows("both by index, int64", {kMin64, 7, kMax64, kMin32, kMax32});
  add_rows("both by index, int64", {-1, kTwo32, 20, kTwo32 + 1, -kTwo32});
  return list;
}

std::vector<LossCase> wild() {
  std::vector<LossCase> list;
  const auto add = [&](const char* name, const std::vector<std::int64_t>& indices) {
    for (const Reduction reduction : {none, sum}) {
      list.push_back(with_reduction(changed(kCases, name, kSmall, indices), reduction));
    }
  };
  for (const auto& offsets : kWildOffsets32) {
    add("bf16 u8", offsets);
    add("f32 i64", offsets);
    add("f16 f32", {offsets.begin(), offsets.end() - 1});  // lengths
  }
  for (const auto& offsets : kWildOffsets64) {
    add("f32 i64", offsets);
    add("f16 i32", {offsets.begin(), offsets.end() - 1});
  }
  return list;
}

std::vector<LossCase> for_bits() {
  std::vector<LossCase> list;
  for (const Reduction reduction : {none, sum, mean}) {
    list.push_back(with_reduction(changed(kCases, "f32 f32", {1, 100003, 0}), reduction));
  }
  // Rows of two pairs. On a GPU, too, a + b is b + a, if both are rounded before they are added.
  constexpr std::int64_t kRows = 5003;
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < kRows; ++i) rows.push_back(i * 1000 % kRows);
  for (const DType dtype : {f32, f16, bf16, f64}) {
    LossCase c =
        with_reduction(changed(kCases, "targets by index", {1, 0, kRows, 2, kRows}, rows), mean);
    c.pred.dtype = c.target.dtype = dtype;
    c.weight = dtype;
    list.push_back(c);
  }
  return list;
}

}  // namespace

template <class P>
const std::vector<typename PairLoss<P>::Case>& PairLoss<P>::table() {
  static const std::vector<Case> cases = cases_for<decltype(P::loss)>(kCases);
  return cases;
}
template <class P>
MoreCases<typename PairLoss<P>::Case> PairLoss<P>::more_cases() {
  using Enum = decltype(P::loss);
  return {cases_for<Enum>(further()), cases_for<Enum>(wild()), cases_for<Enum>(for_bits())};
}

template <class P>
typename PairLoss<P>::Case PairLoss<P>::random_case(Random& random) {
  const auto slots = [&] { return random.below(random.chance(0.1) ? 600 : 40); };
  Case c;
  c.pairing = random.pick(std::vector<CasePairing>{
      dense, zero_padded, mask, lengths32, lengths64, offsets32, offsets64, preds32, preds64,
      targets32, targets64, both32, both64, mixed32, mixed64});
  std::pair dtypes = {any_floating(random), any_dtype(random)};
  if (random.chance(0.5)) dtypes = random.pick(kOwnLoops);
  c.pred = {dtypes.first, any_format(random), any_layout(random)};
  c.target = {dtypes.second, any_format(random), any_layout(random)};
  c.shape = {random.below(5), slots(), random.below(100), random.below(4), slots()};
  c.reduction = random.pick(std::vector<Reduction>{none, sum, mean});
  if (random.chance(0.5)) c.weight = any_floating(random);
  if (c.reduction == mean && random.chance(0.5)) {
    c.normalizer = {random.pick(std::vector<DType>{f64, f32, i64, i32}), random.below(2)};
  }
  c.eps = random.pick(std::vector<CaseEps>{add, clamp, add_0, clamp_0, clamp_4});
  c.values = random.pick(std::vector<Values>{plain, kinks, special});
  c.loss = random.pick(losses<decltype(P::loss)>());
  if constexpr (P::kNumbers == 5) {
    c.angle_unit = random.chance(0.5) ? AngleUnit::kRadians : AngleUnit::kDegrees;
    c.tau = random.pick(std::vector<double>{1, 2});
    c.floor = random.pick(std::vector<double>{0, 1e-15, 0.25, 30});
  }
  return c;
}

template <class P>
std::string PairLoss<P>::describe(const Case& c) {
  const auto& [kind, indices, pred_rows, target_rows] = c.pairing;
  std::string text = in_words(c.loss, kind, "by", indices, pred_rows, target_rows, "pred", c.pred,
                              "target", c.target, "shape", c.shape.images, c.shape.slots,
                              c.shape.rows, c.shape.sets, c.shape.pairs, c.reduction, "weight",
                              c.weight, c.eps.mode, c.eps.value, "values", c.values);
  if (c.normalizer) text += in_words("normalizer", c.normalizer->dtype, c.normalizer->stride);
  if (c.angle_unit == AngleUnit::kDegrees) text += "degrees ";
  if (c.tau) text += in_words("tau", c.tau, "floor", c.floor);
  return text;
}

template struct PairLoss<LossProblem>;
template struct PairLoss<RotatedLossProblem>;

}  // namespace boxloss::conformance
