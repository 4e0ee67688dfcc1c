// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "math/functions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "math/sin_cos.hpp"

/// float's own functions within the bounds that functions.hpp states, over their whole domain:
/// every 997th float of it, and the special ones.
namespace boxloss {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Function {
  const char* name;
  float (*got)(float);
  double (*exact)(double);
  double most;                                  ///< in unit roundoffs
  std::vector<std::pair<float, float>> domain;  ///< of one sign each
  std::vector<std::pair<float, float>> special;
};

/// The largest error over the floats from `first` to `last`, of one sign, in unit roundoffs.
double largest_error(float first, float last, const Function& f) {
  double largest = 0;
  const auto end = bit_cast<std::uint32_t>(last);
  for (auto bits = bit_cast<std::uint32_t>(first); bits <= end; bits += 997) {
    const float x = bit_cast<float>(bits);
    const double exact = f.exact(static_cast<double>(x));
    const double error = std::fabs(static_cast<double>(f.got(x)) - exact);
    if (error > 0) largest = std::fmax(largest, error / (0x1p-24 * std::fabs(exact)));
  }
  return largest;
}

TEST_CASE("functions are within their bounds, and right at their ends") {
  constexpr float kSmallest = std::numeric_limits<float>::denorm_min(),
                  kLargest = std::numeric_limits<float>::max();
  // clang-format off
  const Function functions[] = {
      {"atan_of_fraction", [](float x) { return atan_of_fraction(x); }, std::atan, 2, {{0x1p-60f, 1.0f}}, {{0.0f, 0.0f}}},
      {"exp", [](float x) { return exp(x); }, std::exp, 2, {{-0x1p-60f, -87.0f}, {0x1p-60f, 0.25f}},
       {{0.0f, 1.0f}, {-0.0f, 1.0f}, {-87.001f, 0.0f}, {-104.0f, 0.0f}, {-8192.0f, 0.0f}, {-kInfinity, 0.0f}, {kNan, kNan}}},
      {"log", [](float x) { return log(x); }, std::log, 2, {{kSmallest, kLargest}},
       {{1.0f, 0.0f}, {0.0f, -kInfinity}, {-0.0f, -kInfinity}, {kInfinity, kInfinity}, {kNan, kNan}}},
      {"log1p_of_fraction", [](float x) { return log1p_of_fraction(x); }, std::log1p, 4, {{0x1p-126f, 1.0f}}, {{0.0f, 0.0f}, {kNan, kNan}}},
      {"log1p", [](float x) { return log1p(x); }, std::log1p, 4, {{0x1p-126f, kLargest}}, {{0.0f, 0.0f}, {kInfinity, kInfinity}, {kNan, kNan}}},
      {"log1p_in_range", [](float x) { return log1p_in_range(x); }, std::log1p, 4, {{0x1p-126f, 0x1p100f}}, {{0.0f, 0.0f}, {kNan, kNan}}},
      {"expm1", [](float x) { return expm1(x); }, std::expm1, 4, {{-0x1p-126f, -1e9f}}, {{0.0f, 0.0f}, {-0.0f, 0.0f}, {-kInfinity, -1.0f}, {kNan, kNan}}},
      {"sqrt", [](float x) { return sqrt(x); }, std::sqrt, 2, {{kSmallest, kLargest}}, {{0.0f, 0.0f}, {kInfinity, kInfinity}, {kNan, kNan}}},
      {"reciprocal_sqrt", [](float x) { return reciprocal_sqrt(x); }, [](double x) { return 1 / std::sqrt(x); }, 4, {{1.0f, 1e36f}}, {{kNan, kNan}}},
      {"sin", [](float x) { return sin_cos(x).sin; }, std::sin, 2, {{0x1p-100f, 0.785f}, {-0x1p-100f, -0.785f}}, {}},
      {"cos", [](float x) { return sin_cos(x).cos; }, std::cos, 2, {{0x1p-100f, 0.785f}, {-0x1p-100f, -0.785f}}, {}},
  };
  // clang-format on
  for (const Function& f : functions) {
    INFO(f.name);
    for (const auto& [first, last] : f.domain) CHECK(largest_error(first, last, f) <= f.most);
    for (const auto& [x, expected] : f.special) {
      CAPTURE(x);
      CHECK((std::isnan(expected) ? std::isnan(f.got(x)) : f.got(x) == expected));
    }
  }
}

/// The largest errors, of 1, in unit roundoffs, over angles on both sides of 0; of a line's
/// direction, too, either way.
template <class T>
double largest_turn_error(double most, double unit) {
  double largest = 0;
  for (int i = -300000; i <= 300000; ++i) {
    const T angle = static_cast<T>(most * (i / 300000.0));
    const SinCos<T> turn = sin_cos(angle), line = line_direction(angle);
    const auto exact = static_cast<long double>(angle);
    const long double sin = std::sin(exact), cos = std::cos(exact);
    const long double way = line.sin * sin + line.cos * cos < 0 ? -1 : 1;
    for (const long double error :
         {turn.sin - sin, turn.cos - cos, way * line.sin - sin, way * line.cos - cos}) {
      largest = std::fmax(largest, static_cast<double>(std::fabs(error)) / unit);
    }
  }
  return largest;
}

TEST_CASE("sines and cosines are within 2 unit roundoffs of 1, of double within 4") {
  REQUIRE(largest_turn_error<float>(7, 0x1p-24) <= 2);
  REQUIRE(largest_turn_error<float>(1e4, 0x1p-24) <= 2);
  REQUIRE(largest_turn_error<double>(7, 0x1p-53) <= 4);
  REQUIRE(largest_turn_error<double>(1e4, 0x1p-53) <= 4);
}

template <class T>
void check_turns(SinCos<T> (*turn)(T)) {
  REQUIRE(turn(T(0)).sin == 0);
  REQUIRE(turn(T(0)).cos == 1);
  for (const T none : {T(kNan), T(kInfinity), T(-kInfinity)}) {
    REQUIRE(std::isnan(turn(none).sin));
    REQUIRE(std::isnan(turn(none).cos));
  }
  for (const double angle : {1e5, 1e7, -1e9, 1e15, 3e38}) {
    const SinCos<T> got = turn(static_cast<T>(angle));
    REQUIRE(std::fabs(got.sin) <= T(1));
    REQUIRE(std::fabs(got.cos) <= T(1));
  }
}

TEST_CASE("sines and cosines of special angles") {
  check_turns<float>([](float angle) { return sin_cos(angle); });
  check_turns<float>([](float angle) { return line_direction(angle); });
  check_turns<double>([](double angle) { return sin_cos(angle); });
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
