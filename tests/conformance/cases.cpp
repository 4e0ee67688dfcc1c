// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

namespace boxloss::conformance {
namespace {

constexpr DType f64 = DType::kF64, f32 = DType::kF32, f16 = DType::kF16, bf16 = DType::kBF16,
                u8 = DType::kU8, i16 = DType::kI16, i32 = DType::kI32, i64 = DType::kI64;
constexpr BoxFormat xyxy = BoxFormat::kXyxy, xywh = BoxFormat::kXywh, cxcywh = BoxFormat::kCxcywh;
constexpr Layout packed = Layout::kPacked, wide = Layout::kWide, gaps = Layout::kGaps,
                 odd_gaps = Layout::kOddGaps, shifted = Layout::kShifted,
                 one_image = Layout::kOneImage, one_box = Layout::kOneBox;
constexpr CasePairing dense = {Pairing::Kind::kDense, u8},
                      zero_padded = {Pairing::Kind::kZeroPadded, u8},
                      mask = {Pairing::Kind::kMask, u8}, lengths32 = {Pairing::Kind::kLengths, i32},
                      lengths64 = {Pairing::Kind::kLengths, i64},
                      offsets32 = {Pairing::Kind::kOffsets, i32},
                      offsets64 = {Pairing::Kind::kOffsets, i64};
constexpr Reduction none = Reduction::kNone, sum = Reduction::kSum, mean = Reduction::kMean;
constexpr CaseEps add = {1e-7, EpsMode::kAdd}, clamp = {1e-7, EpsMode::kClamp},
                  add_0 = {0, EpsMode::kAdd}, clamp_0 = {0, EpsMode::kClamp},
                  // In the middle of the kinks' areas, some of which then equal eps.
    clamp_4 = {4, EpsMode::kClamp};
constexpr Values plain = Values::kPlain, kinks = Values::kKinks, special = Values::kSpecial;
constexpr std::nullopt_t no = std::nullopt;

// CPU tasks are 8192 slots, GPU blocks a power of two: sizes lie on both sides of these.
// clang-format off
const std::vector<Case> kCases = {
    // name, pairing, pred, target, {images, slots, rows}, reduction, weight, normalizer, eps, values
    // --- dtypes: the pairs with their own loops
    {"f32 f32", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 33, 0}, none, no, no, add, plain},
    {"bf16 f32", mask, {bf16, xyxy, packed}, {f32, xyxy, packed}, {3, 33, 0}, none, f32, no, add, plain},
    {"f16 f32", lengths32, {f16, xyxy, packed}, {f32, xyxy, packed}, {3, 33, 0}, none, f16, no, clamp, plain},
    {"bf16 bf16", zero_padded, {bf16, xyxy, packed}, {bf16, xyxy, packed}, {3, 33, 0}, none, bf16, no, add, plain},
    {"bf16 u8", offsets32, {bf16, xyxy, packed}, {u8, xyxy, packed}, {3, 33, 70}, none, f64, no, add, plain},
    {"f32 u8", dense, {f32, xyxy, packed}, {u8, xywh, packed}, {3, 33, 0}, none, no, no, clamp, plain},
    {"f64 f64", dense, {f64, xyxy, packed}, {f64, xyxy, packed}, {3, 33, 0}, none, f64, no, add, plain},
    // --- dtypes: any other mix
    {"f32 i16", mask, {f32, cxcywh, packed}, {i16, xyxy, packed}, {2, 31, 0}, mean, no, no, add, plain},
    {"f16 i32", lengths64, {f16, xyxy, packed}, {i32, xywh, packed}, {2, 31, 0}, sum, f32, no, add, plain},
    {"f32 i64", offsets64, {f32, xywh, packed}, {i64, xyxy, packed}, {4, 31, 90}, mean, f32, no, add, plain},
    {"f16 u8", zero_padded, {f16, xywh, packed}, {u8, cxcywh, packed}, {2, 31, 0}, mean, no, f32, clamp, plain},
    {"f16 f16", mask, {f16, cxcywh, packed}, {f16, cxcywh, packed}, {2, 31, 0}, none, f16, no, add, plain},
    {"f16 bf16", dense, {f16, xyxy, packed}, {bf16, xyxy, packed}, {2, 31, 0}, sum, bf16, no, clamp, plain},
    {"f32 bf16", dense, {f32, xyxy, packed}, {bf16, cxcywh, packed}, {2, 31, 0}, none, no, no, clamp, plain},
    {"f32 f64", lengths32, {f32, cxcywh, packed}, {f64, xyxy, packed}, {2, 31, 0}, none, f32, no, add, plain},
    {"f64 f16", offsets32, {f64, xyxy, packed}, {f16, xywh, packed}, {2, 31, 50}, mean, f16, i64, add, plain},
    {"f64 i32", mask, {f64, xywh, packed}, {i32, xyxy, packed}, {2, 31, 0}, sum, f64, no, clamp, plain},
    {"bf16 f64", zero_padded, {bf16, xyxy, packed}, {f64, xyxy, packed}, {2, 31, 0}, mean, bf16, f64, add, plain},
    {"f64 u8", dense, {f64, cxcywh, packed}, {u8, xyxy, packed}, {2, 31, 0}, none, no, no, clamp, plain},
    // --- formats
    {"xywh cxcywh", dense, {f32, xywh, packed}, {f32, cxcywh, packed}, {2, 257, 0}, none, no, no, add, plain},
    {"cxcywh xywh", lengths32, {f32, cxcywh, packed}, {f32, xywh, packed}, {2, 257, 0}, none, f32, no, clamp, plain},
    {"cxcywh cxcywh", offsets32, {bf16, cxcywh, packed}, {f32, cxcywh, packed}, {2, 257, 300}, mean, no, no, add, plain},
    {"xywh xywh", zero_padded, {f16, xywh, packed}, {f32, xywh, packed}, {2, 257, 0}, sum, f32, no, add, plain},
    // --- reductions and normalizers
    {"sum", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {2, 257, 0}, sum, no, no, add, plain},
    {"mean", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {2, 257, 0}, mean, no, no, add, plain},
    {"sum, target's format", dense, {f32, xyxy, packed}, {f32, cxcywh, packed}, {2, 257, 0}, sum, no, no, add, plain},
    {"sum, pred's format", dense, {f32, xywh, packed}, {f32, xyxy, packed}, {2, 257, 0}, sum, no, no, add, plain},
    {"mean by f64", mask, {f32, xyxy, packed}, {f32, xyxy, packed}, {2, 257, 0}, mean, no, f64, add, plain},
    {"mean by f32", offsets64, {f32, xyxy, packed}, {f32, xyxy, packed}, {2, 257, 400}, mean, f32, f32, add, plain},
    {"mean by i64", lengths64, {f32, xyxy, packed}, {f32, xyxy, packed}, {2, 257, 0}, mean, f32, i64, add, plain},
    {"mean by i32", zero_padded, {f64, xyxy, packed}, {f64, xyxy, packed}, {2, 257, 0}, mean, f64, i32, add, plain},
    // --- layouts
    {"wide pred", dense, {f32, xyxy, wide}, {f32, xyxy, packed}, {2, 33, 0}, none, f32, no, add, plain},
    {"wide both", offsets32, {bf16, xyxy, wide}, {f32, xyxy, wide}, {4, 33, 100}, none, no, no, add, plain},
    {"gaps", mask, {f32, xyxy, gaps}, {u8, xyxy, gaps}, {3, 33, 0}, none, no, no, add, plain},
    {"gaps and wide", lengths32, {f16, xyxy, gaps}, {f32, xyxy, wide}, {3, 33, 0}, mean, f32, no, add, plain},
    {"odd gaps", mask, {f32, xyxy, odd_gaps}, {f32, xyxy, odd_gaps}, {3, 33, 0}, none, no, no, add, plain},
    {"shifted pred", dense, {f32, xyxy, shifted}, {f32, xyxy, packed}, {2, 33, 0}, none, no, no, add, plain},
    {"shifted both", dense, {bf16, xyxy, shifted}, {u8, xyxy, shifted}, {2, 33, 0}, mean, no, no, add, plain},
    {"shifted f64", offsets64, {f64, xyxy, shifted}, {f64, xyxy, shifted}, {2, 33, 40}, sum, no, no, add, plain},
    {"one pred", dense, {f32, xyxy, one_box}, {f32, xyxy, packed}, {2, 33, 0}, none, f32, no, add, plain},
    {"one target", mask, {f32, xyxy, packed}, {f32, xyxy, one_box}, {2, 33, 0}, mean, no, no, add, plain},
    {"one image of targets", lengths32, {f16, xyxy, packed}, {f32, xyxy, one_image}, {5, 31, 0}, none, no, no, add, plain},
    {"one image of preds", zero_padded, {bf16, xyxy, one_image}, {bf16, xyxy, packed}, {5, 31, 0}, none, no, no, add, plain},
    {"one image of preds, ragged", offsets32, {f32, xyxy, one_image}, {f32, xyxy, packed}, {5, 31, 99}, none, f32, no, add, plain},
    {"ragged with gaps", offsets32, {f32, xyxy, gaps}, {f32, xyxy, gaps}, {5, 31, 99}, none, f32, no, add, plain},
    // --- sizes
    {"no slots", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 0, 0}, mean, f32, no, add, plain},
    {"no slots, none", mask, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 0, 0}, none, f32, no, add, plain},
    {"no images", lengths32, {f32, xyxy, packed}, {f32, xyxy, packed}, {0, 5, 0}, sum, f32, no, add, plain},
    {"no images, normalized", zero_padded, {f64, xyxy, packed}, {f64, xyxy, packed}, {0, 5, 0}, mean, no, f32, add, plain},
    {"no images, ragged", offsets32, {f32, xyxy, packed}, {f32, xyxy, packed}, {0, 5, 6}, none, f32, no, add, plain},
    {"no target rows", offsets64, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 5, 0}, mean, f32, f64, add, plain},
    {"no preds, ragged", offsets32, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 0, 6}, none, f32, no, add, plain},
    {"one slot", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 1, 0}, mean, f32, no, add, plain},
    {"31", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 31, 0}, sum, no, no, clamp, plain},
    {"several tiles and a long tail", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {1, 1836, 0}, sum, no, no, add, plain},
    {"257", dense, {bf16, xyxy, packed}, {f32, xyxy, packed}, {1, 257, 0}, none, no, no, clamp, plain},
    {"many images of one slot, pred's gaps", dense, {f32, xyxy, gaps}, {f32, xyxy, packed}, {9000, 1, 0}, none, f32, no, add, plain},
    {"many images of one slot, target's gaps", dense, {f32, xyxy, packed}, {f32, xyxy, gaps}, {9000, 1, 0}, none, no, no, add, plain},
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
    {"kinks, weighted", mask, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 257, 0}, none, f32, no, clamp, kinks},
    {"kinks, eps 0", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 257, 0}, none, no, no, add_0, kinks},
    {"kinks, clamped to 0", dense, {f32, xyxy, packed}, {u8, xyxy, packed}, {3, 257, 0}, none, f32, no, clamp_0, kinks},
    {"kinks at eps", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 257, 0}, none, f32, no, clamp_4, kinks},
    {"kinks at eps, f64", zero_padded, {f64, cxcywh, packed}, {f64, xywh, packed}, {3, 257, 0}, none, f64, no, clamp_4, kinks},
    {"kinks, f64", lengths32, {f64, xywh, packed}, {i64, xyxy, packed}, {3, 257, 0}, none, f64, no, add, kinks},
    {"kinks, bf16", offsets32, {bf16, cxcywh, packed}, {u8, xyxy, packed}, {3, 257, 500}, mean, f32, no, clamp_4, kinks},
    {"kinks, f16", zero_padded, {f16, xywh, packed}, {i16, xywh, packed}, {3, 257, 0}, sum, no, no, clamp_4, kinks},
    // --- NaN and infinity
    {"special", dense, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 257, 0}, none, no, no, add, special},
    {"special, clamped", mask, {f32, xyxy, packed}, {f32, cxcywh, packed}, {3, 257, 0}, none, f32, no, clamp, special},
    {"special, eps 0", dense, {f32, xywh, packed}, {u8, xyxy, packed}, {3, 257, 0}, none, f32, no, clamp_0, special},
    {"special, f64", zero_padded, {f64, xyxy, packed}, {f64, xyxy, packed}, {3, 257, 0}, none, f64, no, add_0, special},
    {"special, f16", lengths64, {f16, xyxy, packed}, {f16, xyxy, packed}, {3, 257, 0}, none, f16, no, add, special},
    {"special, bf16", offsets32, {bf16, cxcywh, packed}, {f32, xyxy, packed}, {3, 257, 600}, none, bf16, no, clamp, special},
    {"special, sum", offsets64, {f32, xyxy, packed}, {f32, xyxy, packed}, {3, 257, 600}, sum, no, no, add, special},
    {"special, mean", mask, {bf16, xyxy, packed}, {bf16, xyxy, packed}, {3, 257, 0}, mean, f32, f32, clamp, special},
};
// clang-format on

}  // namespace

const std::vector<Case>& cases() { return kCases; }

std::vector<Loss> losses() {
  std::vector<Loss> all;
  kLosses.for_each([&](Loss loss) { all.push_back(loss); });
  return all;
}

Case random_case(Random& random) {
  const auto floating = [&] { return random.pick(std::vector<DType>{f64, f32, f16, bf16}); };
  const auto format = [&] { return random.pick(std::vector<BoxFormat>{xyxy, xywh, cxcywh}); };
  const auto layout = [&] {
    return random.pick(
        std::vector<Layout>{packed, wide, gaps, odd_gaps, shifted, one_image, one_box});
  };
  const auto maybe = [&](std::vector<DType> dtypes) {
    return random.chance(0.5) ? std::optional<DType>(random.pick(dtypes)) : std::nullopt;
  };
  Case c;
  c.pairing = random.pick(std::vector<CasePairing>{dense, zero_padded, mask, lengths32, lengths64,
                                                   offsets32, offsets64});
  c.pred = {floating(), format(), layout()};
  c.target = {random.pick(std::vector<DType>{f64, f32, f16, bf16, u8, i16, i32, i64}), format(),
              layout()};
  c.shape = {random.below(5), random.below(40), random.below(100)};
  c.reduction = random.pick(std::vector<Reduction>{none, sum, mean});
  c.weight = maybe({f64, f32, f16, bf16});
  if (c.reduction == mean) c.normalizer = maybe({f64, f32, i64, i32});
  c.eps = random.pick(std::vector<CaseEps>{add, clamp, add_0, clamp_0, clamp_4});
  c.values = random.pick(std::vector<Values>{plain, kinks, special});
  c.loss = random.pick(losses());
  return c;
}

}  // namespace boxloss::conformance
