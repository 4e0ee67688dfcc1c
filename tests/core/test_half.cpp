// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch_template_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "dtypes/half.hpp"

namespace boxloss {
namespace {

/// A 16-bit float as IEEE 754 describes it, in doubles, which hold all of its numbers.
struct Format {
  int digits;        // of the significand, the leading one included
  int min_exponent;  // of the smallest normal number
  int max_exponent;  // of the largest number
};

constexpr Format format_of(Half) { return {11, -14, 15}; }
constexpr Format format_of(BFloat16) { return {8, -126, 127}; }

void convert(float value, Half& to) { to = to_half(value); }
void convert(float value, BFloat16& to) { to = to_bfloat16(value); }

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

template <class T>
void require_nearest(float value) {
  INFO("value " << value);
  T converted;
  convert(value, converted);
  REQUIRE(same(to_float(converted), nearest(format_of(T()), value)));
}

TEMPLATE_TEST_CASE("all 16-bit numbers are read, and written as they were", "", Half, BFloat16) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    INFO("bits " << bits);
    const TestType value = {static_cast<std::uint16_t>(bits)};
    const float as_float = to_float(value);
    REQUIRE(same(as_float, decode(format_of(value), value.bits)));
    TestType back;
    convert(as_float, back);
    REQUIRE((std::isnan(as_float) ? std::isnan(to_float(back)) : back.bits == value.bits));
  }
}

/// Between each number and the next, where rounding turns, and one float to each side of it.
TEMPLATE_TEST_CASE("ties go to the even 16-bit number", "", Half, BFloat16) {
  const Format format = format_of(TestType());
  for (unsigned bits = 0; bits < 0x7fff; ++bits) {
    const double low = decode(format, static_cast<std::uint16_t>(bits));
    const double high = decode(format, static_cast<std::uint16_t>(bits + 1));
    if (!std::isfinite(low) || std::isnan(high)) continue;
    // What would follow the largest number, were there no infinity.
    const double next = std::isinf(high) ? std::ldexp(1.0, format.max_exponent + 1) : high;
    const auto middle = static_cast<float>((low + next) / 2);
    for (const float value :
         {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, HUGE_VALF)}) {
      require_nearest<TestType>(value);
      require_nearest<TestType>(-value);
    }
  }
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto low_nan = bit_cast<float>(std::uint32_t{0x7f800001});  // by its last bit alone
  for (const float value : {kMost, -kMost, HUGE_VALF, -HUGE_VALF, std::nanf(""), low_nan}) {
    require_nearest<TestType>(value);
  }
}

}  // namespace
}  // namespace boxloss
