// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "matching_cost.hpp"

#include "index_arrays.hpp"

namespace boxloss::conformance {
namespace {

using namespace words;

constexpr ClassTerm softmax = ClassTerm::kSoftmax, sigmoid = ClassTerm::kSigmoid,
                    focal = ClassTerm::kFocal, given = ClassTerm::kGiven;
constexpr CaseClasses none = {};
constexpr Operand boxes = {f32, cxcywh, packed};
constexpr CaseWeights detr = {2, 5, 1}, l1_only = {0, 1, 0}, no_class = {2, 5, 0},
                      class_only = {0, 0, 1},
                      // Negative, and not what float32 can hold.
    odd = {0.3, -0.7, 1.1};
constexpr std::nullopt_t no = std::nullopt;
constexpr float big = 1e6f, largest = std::numeric_limits<float>::max();

// clang-format off
const std::vector<CostCase> kCases = {
    // name, {term, scores, layout, labels, alpha, gamma}, pred, target, offsets, {layers, images, queries, columns, classes}, weights, eps, nonfinite, values, indices
    // --- terms
    {"none", none, boxes, boxes, i64, {1, 3, 9, 17}, detr, add_0, no, plain},
    {"softmax", {softmax, f32}, boxes, boxes, i64, {1, 3, 9, 17}, detr, add_0, no, plain},
    {"sigmoid", {sigmoid, f32}, boxes, boxes, i64, {1, 3, 9, 17}, detr, add_0, no, plain},
    {"focal", {focal, f32}, boxes, boxes, i64, {1, 3, 9, 17}, detr, add_0, no, plain},
    {"given", {given, f32}, boxes, boxes, i64, {1, 3, 9, 17}, detr, add_0, no, plain},
    {"focal, layers", {focal, f32}, boxes, boxes, i32, {4, 3, 9, 17}, odd, add, no, plain},
    {"given, layers", {given, f32}, boxes, boxes, i32, {4, 3, 9, 17}, odd, clamp, no, plain},
    // --- terms that are left out, and what they alone would read: see make
    {"l1 alone", none, {f32, xyxy, packed}, {f32, xyxy, packed}, i64, {1, 3, 9, 17}, l1_only, add_0, no, plain},
    {"no l1", {given, f32}, boxes, boxes, i64, {1, 3, 9, 17}, class_only, add_0, no, plain},
    // --- sizes
    {"one image, all columns", {softmax, f32}, boxes, boxes, i32, {1, 1, 9, 64}, detr, add, no, plain, {0, 64}},
    {"65 queries", {given, f32}, boxes, boxes, i64, {1, 2, 65, 7}, detr, add, no, plain},
    {"257 columns", {focal, f32}, boxes, boxes, i64, {1, 2, 5, 257}, detr, add, no, plain},
    {"columns of no image", {given, f32}, boxes, boxes, i64, {2, 2, 5, 40}, detr, add, big, plain, {11, 13, 29}},
    // --- kinks
    {"kinks", {softmax, f32}, {f32, xyxy, packed}, {f32, xyxy, packed}, i64, {1, 3, 31, 40}, detr, add, no, kinks},
    {"kinks at eps", {given, bf16}, boxes, boxes, i64, {1, 3, 31, 40}, no_class, clamp_4, no, kinks},
    {"kinks, f64", {focal, f64}, {f64, cxcywh, packed}, {i64, cxcywh, packed}, i64, {1, 3, 31, 40}, odd, add, no, kinks},
    // --- NaN and infinity
    {"special", {softmax, f32}, {f32, xyxy, packed}, {f32, xyxy, packed}, i64, {2, 3, 15, 40}, detr, add, no, special},
    {"special, focal replaced", {focal, bf16}, {bf16, cxcywh, packed}, boxes, i64, {2, 3, 15, 40}, detr, add, -3.0f, special},
    {"special, given replaced", {given, f16}, {f16, xyxy, packed}, {f16, xyxy, packed}, i64, {2, 3, 15, 40}, detr, clamp_0, 0.0f, special},
    // Among them what float64 holds and the result does not.
    {"special, f64", {given, f64}, {f64, cxcywh, packed}, {f64, cxcywh, packed}, i64, {2, 3, 15, 40}, odd, add, no, special},
};

const std::vector<CostCase> kLargeCases = {
    {"every loop wraps", {softmax, f32}, boxes, boxes, i64, {1, 1, 200, 700}, detr, add, no, plain, {0, 700}},
    {"every loop wraps, given", {given, bf16}, {bf16, cxcywh, packed}, boxes, i64, {1, 2, 131, 523}, detr, add, big, plain, {3, 5, 520}},
    {"every loop wraps, layers", {focal, f32}, boxes, boxes, i32, {2, 3, 70, 530}, detr, add, no, plain},
    {"every loop wraps, f64", {sigmoid, f64}, {f64, xyxy, packed}, {u8, xyxy, packed}, i32, {1, 2, 67, 600}, detr, add, no, plain},
    {"many columns", none, boxes, boxes, i64, {1, 2, 2, 20011}, detr, add, no, plain},
    {"many queries", {sigmoid, f32}, boxes, boxes, i64, {1, 1, 20011, 2, 1}, detr, add, no, plain, {0, 2}},
    {"many images", {focal, f32}, boxes, boxes, i64, {1, 3000, 3, 3100, 2}, detr, add, no, plain},
    {"many layers", {given, f32}, boxes, boxes, i64, {2500, 1, 2, 3}, detr, add, no, plain, {0, 2}},
    // As a grid's y and z; of images and layers an emulated GPU would take a minute.
    {"more queries than 16 bits count", none, boxes, boxes, i32, {1, 1, 66000, 1}, l1_only, add, no, plain, {0, 1}},
};
// clang-format on

constexpr CostShape kSmall = {2, 3, 7, 20, 5};

/// For rotated boxes: in degrees, and with a term for the angle, where boxes are not corners.
template <class Enum>
std::vector<CostCaseOf<Enum>> cases_for(const std::vector<CostCase>& list) {
  if constexpr (std::is_same_v<Enum, Loss>) return list;
  std::vector<CostCaseOf<Enum>> all;
  if constexpr (std::is_same_v<Enum, RotatedLoss>) {
    for (const CostCase& c : list) {
      const bool is_corners = c.pred.format == xyxy;
      all.push_back({c.name, c.classes, c.pred, c.target, c.offsets, c.shape, c.weights, c.eps,
                     c.nonfinite, c.values, c.indices, RotatedLoss::kGiou,
                     is_corners ? AngleUnit::kRadians : AngleUnit::kDegrees,
                     is_corners ? 0 : 0.75});
    }
  }
  return all;
}

std::vector<CostCase> further() {
  std::vector<CostCase> list = kLargeCases;
  // Of int64 and of int32.
  add_changed(list, kCases, {"softmax", "given, layers"}, kSmall, kOffsetsOutOfRange);
  // Also those whose lower halves would be in range.
  add_changed(list, kCases, {"focal"}, kSmall, {{kMin64, 7, 11, kMax64}, {-kTwo32, 7, 11, kTwo32}});
  return list;
}

std::vector<CostCase> wild() {
  std::vector<CostCase> list;
  add_changed(list, kCases, {"softmax", "given", "focal, layers", "given, layers"}, kSmall,
              kWildOffsets32);
  add_changed(list, kCases, {"softmax", "given"}, kSmall, kWildOffsets64);
  return list;
}

}  // namespace

template <class P>
const std::vector<typename CostOf<P>::Case>& CostOf<P>::table() {
  static const std::vector<Case> cases = cases_for<decltype(P::loss)>(kCases);
  return cases;
}
template <class P>
MoreCases<typename CostOf<P>::Case> CostOf<P>::more_cases() {
  using Enum = decltype(P::loss);
  const CostCase softmax_of_many = changed(kCases, "softmax", {3, 5, 70, 211});
  auto for_bits = cases_for<Enum>({softmax_of_many, softmax_of_many});
  for_bits[1].loss = Enum::kIou;
  return {cases_for<Enum>(further()), cases_for<Enum>(wild()), for_bits};
}

template <class P>
typename CostOf<P>::Case CostOf<P>::random_case(Random& random) {
  const auto weight = [&] { return random.chance(0.25) ? 0 : random.uniform(-2, 6); };
  Case c;
  // The scores of a query are neighbours.
  c.classes = {
      random.pick(std::vector<ClassTerm>{ClassTerm::kNone, softmax, sigmoid, focal, given}),
      any_floating(random),
      random.pick(std::vector<Layout>{packed, wide, gaps, odd_gaps, shifted, one_image, one_box}),
      any_index(random),
      random.pick(std::vector<double>{0, 0.25, 0.5, 0.9, 1}),
      random.pick(std::vector<double>{2, 2, 0, 1, 1.5, 3.5})};
  c.pred = {any_floating(random), any_format(random), any_layout(random)};
  c.target = {any_dtype(random), random.chance(0.6) ? c.pred.format : any_format(random),
              any_layout(random)};
  c.offsets = any_index(random);
  c.shape = {1 + random.below(3), random.below(5), random.below(20), random.below(40),
             random.below(12)};
  c.weights = {weight(), c.pred.format == c.target.format ? weight() : 0, weight()};
  c.eps = random.pick(std::vector<CaseEps>{add, clamp, add_0, clamp_0, clamp_4});
  if (random.chance(0.5)) c.nonfinite = random.pick(std::vector<float>{0, big, -7.5f, largest});
  c.values = random.pick(std::vector<Values>{plain, kinks, special});
  c.loss = random.pick(losses<decltype(P::loss)>());
  if constexpr (P::kNumbers == 5) {
    c.angle_unit = random.chance(0.5) ? AngleUnit::kRadians : AngleUnit::kDegrees;
    c.angle_weight = weight();
  }
  return c;
}

template <class P>
std::string CostOf<P>::describe(const Case& c) {
  const auto& [term, scores, layout, labels, alpha, gamma] = c.classes;
  return in_words(c.loss, term, scores, layout, "labels", labels, "alpha", alpha, "gamma", gamma,
                  "pred", c.pred, "target", c.target, "offsets", c.offsets, "shape", c.shape.layers,
                  c.shape.images, c.shape.queries, c.shape.columns, c.shape.classes, "weights",
                  c.weights.iou, c.weights.l1, c.weights.class_term, c.eps.mode, c.eps.value,
                  "nonfinite", c.nonfinite, "values", c.values, "angles", c.angle_unit,
                  c.angle_weight);
}

template struct CostOf<CostProblem>;
template struct CostOf<RotatedCostProblem>;

}  // namespace boxloss::conformance
