// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/dtype.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "dtypes/elements.hpp"

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

}  // namespace
}  // namespace boxloss
