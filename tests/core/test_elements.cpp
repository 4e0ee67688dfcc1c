// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/dtype.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "dtypes/elements.hpp"
#include "dtypes/half.hpp"

/// Every implementation, the oracle and the conformance suite read and write numbers through
/// elements.hpp: what it gets wrong they all get wrong alike. So here is what lies in memory.
namespace boxloss {
namespace {

using Doubles = std::vector<double>;

template <class T>
constexpr double kLeast = static_cast<double>(std::numeric_limits<T>::min());
template <class T>
constexpr double kMost = static_cast<double>(std::numeric_limits<T>::max());

bool same(const Box<double>& box, const double* expected) {
  return box.x1 == expected[0] && box.y1 == expected[1] && box.x2 == expected[2] &&
         box.y2 == expected[3];
}

/// Five numbers.
template <class E>
void require_read(DType dtype, const std::vector<E>& memory, const Doubles& expected) {
  INFO(name_of(dtype));
  const Elements<E> typed{memory.data()};
  const Elements<Any> any{memory.data(), dtype};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("element " << i);
    const auto at = static_cast<std::int64_t>(i);
    REQUIRE(typed.template get<double>(at) == expected[i]);
    REQUIRE(any.get<double>(at) == expected[i]);
    REQUIRE(any.get<float>(at) == static_cast<float>(expected[i]));
  }
  REQUIRE(same(typed.template get_box<Box<double>>(1), &expected[1]));
  REQUIRE(same(any.get_box<Box<double>>(1), &expected[1]));
}

template <class T>
void require_integers_read(DType dtype) {
  constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  const T below_0 = std::numeric_limits<T>::is_signed ? T(-3) : T(3);
  require_read<T>(dtype, {least, most, 1, below_0, 0},
                  {kLeast<T>, kMost<T>, 1, static_cast<double>(below_0), 0});
}

TEST_CASE("integers of every width are read with their sign") {
  require_integers_read<std::uint8_t>(DType::kU8);
  require_integers_read<std::int16_t>(DType::kI16);
  require_integers_read<std::int32_t>(DType::kI32);
  require_integers_read<std::int64_t>(DType::kI64);
}

const Doubles kNumbers = {7, -2, 0.5, 1.25, -96};
const std::vector<Half> kHalves = {{0x4700}, {0xc000}, {0x3800}, {0x3d00}, {0xd600}};
const std::vector<BFloat16> kBFloat16s = {{0x40e0}, {0xc000}, {0x3f00}, {0x3fa0}, {0xc2c0}};

TEST_CASE("floats of every width are read") {
  require_read<double>(DType::kF64, kNumbers, kNumbers);
  require_read<float>(DType::kF32, {kNumbers.begin(), kNumbers.end()}, kNumbers);
  require_read<Half>(DType::kF16, kHalves, kNumbers);
  require_read<BFloat16>(DType::kBF16, kBFloat16s, kNumbers);
}

template <class E>
bool same_bits(const std::vector<E>& a, const std::vector<E>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(E)) == 0;
}

template <class C, class E>
void require_written(DType dtype, const std::vector<E>& expected) {
  INFO(name_of(dtype));
  const auto number = [](std::size_t i) { return static_cast<C>(kNumbers[i]); };
  const Box<C> box = {number(1), number(2), number(3), number(4)};
  std::vector<E> typed(expected.size()), any(expected.size());
  const Outputs<E> to_typed{typed.data()};
  to_typed.set(0, number(0));
  to_typed.set_box(1, box);
  REQUIRE(same_bits(typed, expected));
  const Outputs<Any> to_any{any.data(), dtype};
  to_any.set(0, number(0));
  to_any.set_box(1, box);
  REQUIRE(same_bits(any, expected));
}

template <class C>
void require_all_written() {
  require_written<C>(DType::kF64, kNumbers);
  require_written<C>(DType::kF32, std::vector<float>(kNumbers.begin(), kNumbers.end()));
  require_written<C>(DType::kF16, kHalves);
  require_written<C>(DType::kBF16, kBFloat16s);
}

TEST_CASE("floats of every width are written") {
  require_all_written<float>();
  require_all_written<double>();
}

// --- 16 bits

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
