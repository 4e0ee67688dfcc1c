// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>

#include "conformance/bounded.hpp"
#include "losses/giou.hpp"

/// The comparison is only as good as its bounds: they must hold, and they must be small.
namespace boxloss::conformance {
namespace {

using B = Bounded<float>;

TEST_CASE("exact arithmetic leaves no error") {
  const B x = B(3.0) * B(0.5) + B(4.0);
  REQUIRE(x.value == 5.5);
  REQUIRE(x.error == 0);
}

TEST_CASE("one rounding leaves one unit roundoff") {
  const B third = B(1.0) / B(3.0);
  REQUIRE(third.error >= 0x1p-24 / 3);
  REQUIRE(third.error <= 1.001 * 0x1p-24 / 3);
  REQUIRE(std::fabs(static_cast<double>(1.0f / 3.0f) - third.value) <= third.error);
}

TEST_CASE("cancellation keeps the absolute error") {
  const B difference = B(1.0) / B(3.0) - B(1.0) / B(3.0);
  REQUIRE(difference.value == 0);
  REQUIRE(difference.error >= 2 * 0x1p-24 / 3);
  REQUIRE((B(1.0) / difference).error == kUnbounded);
  REQUIRE_FALSE((difference < B(0.0)).is_sure);
  REQUIRE((difference < B(1.0)).is_sure);
}

TEST_CASE("special values are certain unless rounding could miss them") {
  const B infinity(kUnbounded, 0);
  const B third = B(1.0) / B(3.0);
  REQUIRE((third + infinity).error == 0);
  REQUIRE(std::isnan((infinity - infinity).value));
  REQUIRE((infinity - infinity).error == 0);
  REQUIRE((third / B(0.0)).error == 0);
  REQUIRE(((third - third) * infinity).error == kUnbounded);
  REQUIRE((B(0x1p100) * B(0x1p100)).error == kUnbounded);
}

TEST_CASE("two ordinary boxes have a loss known to 32 roundings") {
  const Box<B> pred = {10.1f, 20.2f, 30.3f, 40.4f};
  const Box<B> target = {12.5f, 18.7f, 33.1f, 38.9f};
  const B loss = Giou::loss(pred, target, Eps<B>{1e-7f, -kUnbounded, 1e-7f});
  REQUIRE(loss.error > 0x1p-24);
  REQUIRE(loss.error < 32 * 0x1p-24);
}

}  // namespace
}  // namespace boxloss::conformance
