// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

/// What must be refused, in tables. Checks that operations share, of boxes, pointers, eps and an
/// execution, are tried with all that they refuse by the losses; others have a row that shows that
/// they ask for the check.
namespace boxloss {

using Catch::Matchers::Message;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMany = std::int64_t{1} << 33;
constexpr auto kNoDType = static_cast<DType>(77);
constexpr auto kNoFormat = static_cast<BoxFormat>(3);
constexpr auto kNoEpsMode = static_cast<EpsMode>(2);

const std::string kOffFour = " does not lie on a multiple of the 4 bytes of a ";
const std::string kOffEight = " does not lie on a multiple of the 8 bytes of a ";
const std::string kNotFloating = "; it must be float64, float32, float16 or bfloat16";
const std::string kNotIndices = "; it must be int32 or int64";
const std::string kNoElements =
    "; it must be one of float64, float32, float16, bfloat16, uint8, int16, int32, int64";

/// To one byte behind where it should point.
template <class T>
void shift(T*& pointer) {
  pointer = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

/// What is wrong with a call that was right, and the whole message about it.
template <class Call>
struct Refusal {
  std::function<void(Call&)> spoil;
  std::string text;
};
template <class Call>
using Refusals = std::vector<Refusal<Call>>;

/// Each is an error, and nothing was written.
template <class Error, class Call>
void require_refused(const Refusals<Call>& rows, void (Call::*run)() = &Call::run) {
  for (const Refusal<Call>& row : rows) {
    INFO(row.text);
    Call call;
    row.spoil(call);
    REQUIRE_THROWS_MATCHES((call.*run)(), Error, Message(row.text));
    REQUIRE(call.is_untouched());
  }
}

template <class Call>
void require_ok(const std::function<void(Call&)>& change) {
  Call call;
  change(call);
  REQUIRE_NOTHROW(call.run());
}

/// Of a call's outputs one, before anything is written to it.
template <class T, std::size_t kCount>
struct Output {
  alignas(8) T values[kCount];

  Output() { std::fill(std::begin(values), std::end(values), T(99)); }
  bool is_untouched() const {
    return std::count(std::begin(values), std::end(values), T(99)) == kCount;
  }
};

/// Room for any of these problems. A call with one cannot be copied: it points into itself.
struct Workspace {
  std::vector<double> memory = std::vector<double>(4096);
  Execution execution;

  Workspace() {
    execution.workspace = memory.data();
    execution.workspace_bytes = memory.size() * sizeof(double);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
};

/// Refused one byte below what is needed.
template <class Call>
void require_workspace_of(std::size_t bytes) {
  REQUIRE(bytes > 0);
  const std::string needed = std::to_string(bytes);
  require_refused<InvalidArgument, Call>(
      {{[=](Call& c) { c.workspace.execution.workspace_bytes = bytes - 1; },
        "workspace has " + std::to_string(bytes - 1) + " bytes; this problem needs " + needed},
       {[](Call& c) { c.workspace.execution.workspace = nullptr; },
        "workspace is null; this problem needs " + needed + " bytes"}});
  require_ok<Call>([=](Call& c) { c.workspace.execution.workspace_bytes = bytes; });
}

}  // namespace boxloss
