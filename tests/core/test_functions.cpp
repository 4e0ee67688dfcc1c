// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "math/functions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

/// float's own functions within the bounds that functions.hpp states, over their whole domain:
/// every 97th float of it, and the special ones.
namespace boxloss {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The largest error over the floats from `first` to `last`, of one sign, in unit roundoffs.
template <class Got, class Expected>
double largest_error(float first, float last, const Got& got, const Expected& expected) {
  double largest = 0;
  const auto end = bit_cast<std::uint32_t>(last);
  for (auto bits = bit_cast<std::uint32_t>(first); bits <= end; bits += 97) {
    const float x = bit_cast<float>(bits);
    const double exact = expected(static_cast<double>(x));
    const double error = std::fabs(static_cast<double>(got(x)) - exact);
    if (error > 0) largest = std::fmax(largest, error / (0x1p-24 * std::fabs(exact)));
  }
  return largest;
}

TEST_CASE("atan of a fraction is within 2 unit roundoffs") {
  const auto got = [](float q) { return atan_of_fraction(q); };
  const auto exact = [](double q) { return std::atan(q); };
  REQUIRE(largest_error(0x1p-60f, 1, got, exact) <= 2);
  REQUIRE(atan_of_fraction(0.0f) == 0);
}

TEST_CASE("exp is within 2 unit roundoffs, and 0 below -87") {
  const auto got = [](float x) { return exp(x); };
  const auto exact = [](double x) { return std::exp(x); };
  REQUIRE(largest_error(-0x1p-60f, -87, got, exact) <= 2);
  REQUIRE(largest_error(0x1p-60f, 0.25f, got, exact) <= 2);
  REQUIRE(exp(0.0f) == 1);
  REQUIRE(exp(-0.0f) == 1);
  for (const float x : {-87.001f, -104.0f, -8192.0f, -kInfinity}) REQUIRE(exp(x) == 0);
  REQUIRE(std::isnan(exp(kNan)));
}

TEST_CASE("log is within 2 unit roundoffs") {
  const auto got = [](float x) { return log(x); };
  const auto exact = [](double x) { return std::log(x); };
  const float smallest = std::numeric_limits<float>::denorm_min();
  REQUIRE(largest_error(smallest, std::numeric_limits<float>::max(), got, exact) <= 2);
  REQUIRE(log(1.0f) == 0);
  REQUIRE(log(0.0f) == -kInfinity);
  REQUIRE(log(-0.0f) == -kInfinity);
  REQUIRE(log(kInfinity) == kInfinity);
  REQUIRE(std::isnan(log(kNan)));
}

TEST_CASE("log1p of a fraction is within 4 unit roundoffs") {
  const auto got = [](float x) { return log1p_of_fraction(x); };
  const auto exact = [](double x) { return std::log1p(x); };
  REQUIRE(largest_error(0x1p-126f, 1, got, exact) <= 4);
  REQUIRE(log1p_of_fraction(0.0f) == 0);
  REQUIRE(std::isnan(log1p_of_fraction(kNan)));
}

TEST_CASE("sqrt is within 2 unit roundoffs") {
  const auto got = [](float x) { return sqrt(x); };
  const auto exact = [](double x) { return std::sqrt(x); };
  const float smallest = std::numeric_limits<float>::denorm_min();
  REQUIRE(largest_error(smallest, std::numeric_limits<float>::max(), got, exact) <= 2);
  REQUIRE(sqrt(0.0f) == 0);
  REQUIRE(sqrt(kInfinity) == kInfinity);
  REQUIRE(std::isnan(sqrt(kNan)));
}

TEST_CASE("atan2 is within 8 unit roundoffs in every direction") {
  double largest = 0;
  for (int i = 1; i < 200000; ++i) {
    // Directions all around, at many distances.
    const double angle = 3.14159265358979 * (i / 100000.0 - 1), length = std::exp2(i % 120 - 60);
    const float x = static_cast<float>(length * std::cos(angle));
    const float y = static_cast<float>(length * std::sin(angle));
    const double exact = std::atan2(static_cast<double>(y), static_cast<double>(x));
    largest = std::fmax(largest, std::fabs(atan2(y, x) - exact) / (0x1p-24 * std::fabs(exact)));
  }
  REQUIRE(largest <= 8);
}

template <class T>
void check_axes() {
  REQUIRE(atan2(T(0), T(0)) == 0);
  REQUIRE(atan2(T(0), T(3)) == 0);
  REQUIRE(atan2(T(3), T(0)) == T(1.5707963267948966));
  REQUIRE(atan2(T(-3), T(0)) == T(-1.5707963267948966));
  REQUIRE(atan2(T(0), T(-3)) == T(3.1415926535897932));
  REQUIRE(atan2(T(-0.0), T(-0.0)) == 0);
  REQUIRE(std::isnan(atan2(T(kNan), T(kNan))));
}

TEST_CASE("atan2 on the axes") {
  check_axes<float>();
  check_axes<double>();
}

TEST_CASE("a fraction of nothing is 0") {
  REQUIRE(fraction(0.0f, 0.0f) == 0);
  REQUIRE(fraction(1.0f, 4.0f) == 0.25f);
  REQUIRE(std::isnan(fraction(kNan, kNan)));
  // The reciprocal of a subnormal number may be infinite.
  for (const float whole : {1e-45f, 1e-39f, 1.17549435e-38f}) {
    REQUIRE(fraction(0.0f, whole) == 0);
    REQUIRE(fraction(whole, whole) == whole);
  }
  REQUIRE(fraction(0x1p-125f, 0x1p-125f) == 1);
}

}  // namespace
}  // namespace boxloss
