// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/max_iou_match.hpp"
#include "rotated_oracle.hpp"

/// Matches of rotated boxes beside another algorithm for areas; by hand they are in tests/torch.
namespace boxloss {
namespace {

using Catch::Matchers::WithinAbs;

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

}  // namespace
}  // namespace boxloss
