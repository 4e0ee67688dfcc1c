// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "dtypes/half.hpp"

namespace boxloss {
namespace {

/// A 16-bit float as IEEE 754 describes it, in doubles, which hold all of its numbers.
struct Format {
  int digits;        // of the significand, the leading one included
  int min_exponent;  // of the smallest normal number
  int max_exponent;  // of the largest number
};

constexpr Format kHalfFormat = {11, -14, 15};
constexpr Format kBFloat16Format = {8, -126, 127};

double decode(const Format& f, std::uint16_t bits) {
  const int stored_digits = f.digits - 1;
  const int significand = bits & ((1 << stored_digits) - 1);
  const int exponent = (bits & 0x7fff) >> stored_digits;
  const int special_exponent = f.max_exponent - f.min_exponent + 2;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == special_exponent) {
    return significand != 0 ? std::numeric_limits<double>::quiet_NaN()
                            : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(significand, f.min_exponent - stored_digits);
  return sign * std::ldexp(significand + (1 << stored_digits),
                           exponent - 1 + f.min_exponent - stored_digits);
}

/// The nearest number of the format; the even one of two.
double nearest(const Format& f, double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), f.min_exponent);
  const double unit = std::ldexp(1.0, exponent - f.digits + 1);
  const double result = std::nearbyint(value / unit) * unit;
  return std::fabs(result) < std::ldexp(1.0, f.max_exponent + 1)
             ? result
             : std::copysign(std::numeric_limits<double>::infinity(), value);
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

/// What is under test, and the format that it should follow.
template <class T>
struct Conversions {
  Format format;
  T (*from_float)(float);
};

const Conversions<Half> kHalf = {kHalfFormat, [](float x) { return to_half(x); }};
const Conversions<BFloat16> kBFloat16 = {kBFloat16Format, [](float x) { return to_bfloat16(x); }};

template <class T>
void require_all_values_round_trip(const Conversions<T>& type) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const T value = {static_cast<std::uint16_t>(bits)};
    const float as_float = to_float(value);
    INFO("bits " << bits);
    REQUIRE(same(as_float, decode(type.format, value.bits)));
    const T back = type.from_float(as_float);
    REQUIRE((std::isnan(as_float) ? std::isnan(to_float(back)) : back.bits == value.bits));
  }
}

template <class T>
void require_nearest(const Conversions<T>& type, float value) {
  INFO("value " << value);
  REQUIRE(same(to_float(type.from_float(value)), nearest(type.format, value)));
}

/// Between each number and the next, where rounding turns, and one float to each side of it.
template <class T>
void require_ties_go_to_even(const Conversions<T>& type) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (unsigned bits = 0; bits < 0x7fff; ++bits) {
    const double low = decode(type.format, static_cast<std::uint16_t>(bits));
    const double high = decode(type.format, static_cast<std::uint16_t>(bits + 1));
    if (!std::isfinite(low) || std::isnan(high)) continue;
    // What would follow the largest number, were there no infinity.
    const double next = high == infinity ? std::ldexp(1.0, type.format.max_exponent + 1) : high;
    const auto middle = static_cast<float>((low + next) / 2);
    for (const float value :
         {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, HUGE_VALF)}) {
      require_nearest(type, value);
      require_nearest(type, -value);
    }
  }
}

template <class T>
void require_nearest_of_any_float(const Conversions<T>& type) {
  std::mt19937 random(20260101);
  for (int i = 0; i < 200000; ++i) {
    require_nearest(type, bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  for (const float value :
       {0.0f, -0.0f, std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min(),
        HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::quiet_NaN()}) {
    require_nearest(type, value);
  }
}

TEST_CASE("all float16 values round-trip") { require_all_values_round_trip(kHalf); }
TEST_CASE("all bfloat16 values round-trip") { require_all_values_round_trip(kBFloat16); }
TEST_CASE("float16 ties go to even") { require_ties_go_to_even(kHalf); }
TEST_CASE("bfloat16 ties go to even") { require_ties_go_to_even(kBFloat16); }
TEST_CASE("floats go to the nearest float16") { require_nearest_of_any_float(kHalf); }
TEST_CASE("floats go to the nearest bfloat16") { require_nearest_of_any_float(kBFloat16); }

TEST_CASE("16-bit numbers known by heart") {
  REQUIRE(to_half(1.0f).bits == 0x3c00);
  REQUIRE(to_half(65504.0f).bits == 0x7bff);  // the largest
  REQUIRE(to_half(65520.0f).bits == 0x7c00);  // halfway beyond it: infinity
  REQUIRE(to_half(0x1p-24f).bits == 0x0001);  // the smallest
  REQUIRE(to_half(0x1p-25f).bits == 0x0000);  // half of it: to even
  REQUIRE(to_bfloat16(1.0f).bits == 0x3f80);
  REQUIRE(to_bfloat16(-0.0f).bits == 0x8000);
}

}  // namespace
}  // namespace boxloss
