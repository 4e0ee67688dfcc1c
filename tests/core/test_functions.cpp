// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "math/functions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "math/sin_cos.hpp"

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

TEST_CASE("log1p is within 4 unit roundoffs") {
  const auto got = [](float x) { return log1p(x); };
  const auto exact = [](double x) { return std::log1p(x); };
  REQUIRE(largest_error(0x1p-126f, std::numeric_limits<float>::max(), got, exact) <= 4);
  REQUIRE(log1p(0.0f) == 0);
  REQUIRE(log1p(kInfinity) == kInfinity);
  REQUIRE(std::isnan(log1p(kNan)));
}

TEST_CASE("expm1 is within 4 unit roundoffs") {
  const auto got = [](float x) { return expm1(x); };
  const auto exact = [](double x) { return std::expm1(x); };
  REQUIRE(largest_error(-0x1p-126f, -1e9f, got, exact) <= 4);
  REQUIRE(expm1(0.0f) == 0);
  REQUIRE(expm1(-0.0f) == 0);
  REQUIRE(expm1(-kInfinity) == -1);
  REQUIRE(std::isnan(expm1(kNan)));
}

/// The largest errors, of 1, in unit roundoffs, over angles on both sides of 0.
template <class T>
double largest_turn_error(double most, double unit) {
  double largest = 0;
  for (int i = -300000; i <= 300000; ++i) {
    const T angle = static_cast<T>(most * (i / 300000.0));
    const SinCos<T> got = sin_cos(angle);
    const auto exact = static_cast<long double>(angle);
    const long double errors[] = {got.sin - std::sin(exact), got.cos - std::cos(exact)};
    for (const long double error : errors) {
      largest = std::fmax(largest, static_cast<double>(std::fabs(error)) / unit);
    }
  }
  return largest;
}

TEST_CASE("sin_cos is within 2 unit roundoffs of 1") {
  REQUIRE(largest_turn_error<float>(7, 0x1p-24) <= 2);
  REQUIRE(largest_turn_error<float>(1e4, 0x1p-24) <= 2);
  REQUIRE(largest_turn_error<double>(7, 0x1p-53) <= 4);
  REQUIRE(largest_turn_error<double>(1e4, 0x1p-53) <= 4);
}

TEST_CASE("sin_cos is within 2 unit roundoffs of the result up to an eighth of a turn") {
  const auto sin_of = [](float x) { return sin_cos(x).sin; };
  const auto cos_of = [](float x) { return sin_cos(x).cos; };
  const auto sin_exact = [](double x) { return std::sin(x); };
  const auto cos_exact = [](double x) { return std::cos(x); };
  for (const float sign : {1.0f, -1.0f}) {
    REQUIRE(largest_error(sign * 0x1p-100f, sign * 0.785f, sin_of, sin_exact) <= 2);
    REQUIRE(largest_error(sign * 0x1p-100f, sign * 0.785f, cos_of, cos_exact) <= 2);
  }
}

template <class T>
void check_turns() {
  REQUIRE(sin_cos(T(0)).sin == 0);
  REQUIRE(sin_cos(T(0)).cos == 1);
  for (const T none : {T(kNan), T(kInfinity), T(-kInfinity)}) {
    REQUIRE(std::isnan(sin_cos(none).sin));
    REQUIRE(std::isnan(sin_cos(none).cos));
  }
  for (const double angle : {1e5, 1e7, -1e9, 1e15, 3e38}) {
    const SinCos<T> got = sin_cos(static_cast<T>(angle));
    REQUIRE(std::fabs(got.sin) <= T(1));
    REQUIRE(std::fabs(got.cos) <= T(1));
  }
}

TEST_CASE("sin_cos of special angles") {
  check_turns<float>();
  check_turns<double>();
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

TEST_CASE("a share is in the unit interval") {
  REQUIRE(share(1.0f, 4.0f) == 0.25f);
  REQUIRE(share(-1.0f, -4.0f) == 0.25f);
  REQUIRE(share(1.0f, -4.0f) == 0);
  REQUIRE(share(5.0f, 4.0f) == 1);
  for (const float whole : {0.0f, -0.0f, 1e-45f, -1e-39f}) {
    REQUIRE(share(1e9f, whole) == 0);
    REQUIRE(share(0.0f, whole) == 0);
  }
  REQUIRE(share(1e9f, 0x1p-125f) == 1);  // the quotient is infinite
}

}  // namespace
}  // namespace boxloss
