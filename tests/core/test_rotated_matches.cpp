// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/boxloss.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/max_iou_match.hpp"
#include "rotated_oracle.hpp"

/// Matches of rotated boxes: worked out by hand, and by another algorithm for areas.
namespace boxloss {
namespace {

using Catch::Matchers::WithinAbs;
using Indices64 = std::vector<std::int64_t>;
using Boxes5 = std::vector<RotatedBox<double>>;

constexpr double kPi = 3.14159265358979323846;

BoxView view_of(const Boxes5& boxes) {
  return {boxes.data(),
          DType::kF64,
          BoxFormat::kXyxy,
          1,
          static_cast<std::int64_t>(boxes.size()),
          0,
          5};
}

/// The IoU of each anchor with the one box.
std::vector<double> ious(const Boxes5& anchors, const RotatedBox<double>& box, AngleUnit unit) {
  const Boxes5 boxes = {box};
  const Indices64 offsets = {0, 1};
  MaxIouProblem p;
  p.anchors = view_of(anchors);
  p.target = view_of(boxes);
  p.angle_unit = unit;
  p.offsets = {offsets.data(), DType::kI64};
  p.high = p.low = 0.5;
  std::vector<double> result(anchors.size());
  max_iou_match(implementation("cpu/reference"), p, {nullptr, result.data()}, {});
  return result;
}

TEST_CASE("an anchor's overlap with a rotated box is exact") {
  for (const bool in_degrees : {false, true}) {
    const double eighth = in_degrees ? -45 : kPi / 4;  // clockwise
    const Boxes5 anchors = {{5, 5, 2, 2, 0},          {5, 5, 2, 2, eighth}, {6, 5, 2, 2, 0},
                            {5, 5, 4, 1, 2 * eighth}, {8, 8, 2, 2, eighth}, {5, 5, 2, 0, 0},
                            {6, 6, 4, 1, eighth},     {5, 5, NAN, 2, 0}};
    const auto unit = in_degrees ? AngleUnit::kDegrees : AngleUnit::kRadians;
    const std::vector<double> got = ious(anchors, {5, 5, 2, 2, 0}, unit);
    // Of a square and itself turned by an eighth, the octagon has the area 8 (sqrt(2) - 1).
    // Of the strip across the square's corner at (6, 6), which an angle of the other sign would
    // hardly meet, it has 1.75.
    const double expected[] = {1, std::sqrt(0.5), 1. / 3, 1. / 3, 0, 0, 1.75 / 6.25};
    for (int i = 0; i < 7; ++i) CHECK_THAT(got[i], WithinAbs(expected[i], 1e-15));
    CHECK(std::isnan(got[7]));
  }
}

TEST_CASE("what decides of rotated boxes is the polygons' IoU, and boxes lie in their bounds") {
  std::mt19937 engine(7);
  const auto uniform = [&](float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(engine);
  };
  for (int i = 0; i < 20000; ++i) {
    const float size = std::exp(uniform(-6, 6)), far = uniform(0, 2);
    const auto box = [&]() -> RotatedBox<float> {  // up to a thousand times as long as wide
      return {size * uniform(0, far), size * uniform(0, far), size,
              size * std::exp(uniform(-6.9f, 0)), uniform(-7, 7)};
    };
    const RotatedBox<float> a = box(), b = box();
    const MatchBox<RotatedBox<float>> match_a = match_box(a), match_b = match_box(b);
    const auto exact = static_cast<double>(
        rotated_oracle::iou(rotated_oracle::exactly(a), rotated_oracle::exactly(b)));
    REQUIRE_THAT(iou_of(match_a, match_b), WithinAbs(exact, 3e-5));
    const Box<float>& extent = match_a.extent;
    for (const auto& corner : reference::corners_of(rotated_oracle::exactly(a), {0, 0})) {
      const auto x = static_cast<float>(corner.x), y = static_cast<float>(corner.y);
      const float rounding = 1e-6f * (std::fabs(x) + std::fabs(y) + size);
      REQUIRE((x >= extent.x1 - rounding && x <= extent.x2 + rounding));
      REQUIRE((y >= extent.y1 - rounding && y <= extent.y2 + rounding));
    }
  }
}

/// NaN is equal to NaN.
template <class C>
bool have_equal_bits(C a, C b) {
  return std::isnan(a) ? std::isnan(b) : std::memcmp(&a, &b, sizeof(C)) == 0;
}

TEMPLATE_TEST_CASE("a GPU's numbers have the host's bits", "", float, double) {
  using C = TestType;
  using U = UnfusedNumber<C>;
  std::mt19937 engine(7);
  const auto number = [&](double size) {
    const C special[] = {C(0), -C(0), C(NAN), C(INFINITY), C(-1)};
    if (engine() % 32 == 0) return special[engine() % 5];
    return static_cast<C>(std::uniform_real_distribution<double>(0, size)(engine));
  };
  int finite = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto box = [&] {
      return RotatedBox<C>{number(9), number(9), number(6), number(6), number(7)};
    };
    const RotatedBox<C> a = box(), b = box();
    const SinCos<C> turn = sin_cos(a.angle);
    const SinCos<U> unfused_turn = sin_cos(U(a.angle));
    REQUIRE(have_equal_bits(turn.sin, unfused_turn.sin.value));
    REQUIRE(have_equal_bits(turn.cos, unfused_turn.cos.value));
    REQUIRE(have_equal_bits(half_extent(a.w, a.h), half_extent(U(a.w), U(a.h)).value));
    const Eps<C> eps = {C(0), smallest_divisor<C>(), C(0)};
    const Eps<U> unfused_eps = {U(0), smallest_divisor<U>(), U(0)};
    const C iou = rotated::iou_of(rotated::overlap(a, b, eps));
    const U unfused =
        rotated::iou_of(rotated::overlap(converted<U>(a), converted<U>(b), unfused_eps));
    REQUIRE(have_equal_bits(iou, unfused.value));
    finite += iou > 0 ? 1 : 0;
  }
  REQUIRE(finite > 2000);
}

/// Anchors of one image, at points, that predict their box.
struct Oriented {
  std::vector<std::vector<double>> points;
  RotatedBox<double> box;
  TaskAlignedProblem p = {};
  std::vector<std::int64_t> offsets = {0, 1};

  void require(const Indices64& expected, double overlap = 1) {
    std::vector<double> all_points;
    for (const auto& point : points)
      all_points.insert(all_points.end(), point.begin(), point.end());
    const std::vector<double> scores(points.size(), 1);
    Boxes5 preds(points.size(), box), boxes = {box};
    for (auto& pred : preds) pred.cx += moved;
    p.images = p.classes = 1;
    p.anchors = static_cast<std::int64_t>(points.size());
    p.scores = {scores.data(), DType::kF64, 0, 1, 1};
    p.pred = view_of(preds);
    p.points = {all_points.data(), DType::kF64};
    p.target = view_of(boxes);
    if (!p.angle_unit.has_value()) p.angle_unit = AngleUnit::kRadians;
    if (!offsets.empty()) p.offsets = {offsets.data(), DType::kI64};
    p.labels = {&label, DType::kI64};
    Indices64 index(points.size(), 9);
    std::vector<float> score(points.size(), 9), overlaps(points.size(), 9);
    task_aligned_match(implementation("cpu/reference"), p,
                       {index.data(), score.data(), overlaps.data()}, {});
    REQUIRE(index == expected);
    for (std::size_t a = 0; a < points.size(); ++a) {
      CHECK_THAT(overlaps[a], WithinAbs(index[a] < 0 ? 0 : overlap, 1e-7));
    }
  }

  double moved = 0;
  std::int64_t label = 0;
};

TEST_CASE("points lie in a rotated box, its edges included") {
  // A width of 8 along (1, 1), a height of 2.
  Oriented example = {{{12, 12}, {12, 8}, {14, 10}, {10.6, 9.4}, {10.8, 9.2}},
                      {10, 10, 8, 2, kPi / 4}};
  example.require({0, -1, -1, 0, -1});
  example.p.angle_unit = AngleUnit::kDegrees;
  example.box.angle = -45;
  example.require({0, -1, -1, 0, -1});
  Oriented upright = {{{14, 11}, {14.1, 11}, {6, 9}, {6, 8.9}}, {10, 10, 8, 2, 0}};
  upright.require({0, -1, 0, -1});
  upright.p.min_side = 3;  // of the height alone
  upright.require({0, -1, 0, 0});
  upright.p.small_side = 2;
  upright.require({0, -1, 0, -1});
  // Rounding leaves no room beside the edges of a box as small as the last place.
  const double unit = std::ldexp(1., -40);
  Oriented tiny = {{{4096 + unit, 4096}}, {4096, 4096, 2 * unit, 2 * unit, 0}};
  tiny.require({0});
}

TEST_CASE("a box whose label names no class has no anchor") {
  Oriented example = {{{10, 10}}, {10, 10, 8, 2, 0}};
  for (const std::int64_t label : {-1, 1, 99}) {
    example.label = label;
    example.require({-1});
  }
}

TEST_CASE("the overlap of rotated boxes is probiou") {
  // Gaussians that are alike and moved by d along a variance v: D = d^2 / (8 v), v = 64 / 12.
  Oriented example = {{{10, 10}}, {10, 10, 8, 2, 0}};
  example.moved = 2;
  example.require({0}, 1 - std::sqrt(-std::expm1(-4 / (8 * 64. / 12))));
}

TEST_CASE("a padded list's rotated box counts if its numbers add up to more than 0") {
  Oriented example = {{{1, 0}}, {1, 0, 2, 2, 0.5}};
  example.offsets = {};
  example.require({0});
  example.box = {-2, 0, 1, 1, 0};
  example.points = {{-2, 0}};
  example.require({-1});
  example.box.angle = 0.1;
  example.require({0});
  example.p.angle_unit = AngleUnit::kDegrees;
  example.require({-1});
  example.box.angle = -90;
  example.require({0});
}

}  // namespace
}  // namespace boxloss
