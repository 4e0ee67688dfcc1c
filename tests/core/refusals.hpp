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
constexpr std::int64_t kMost64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMany = std::int64_t{1} << 33;
constexpr auto kNoDType = static_cast<DType>(77);
constexpr auto kNoFormat = static_cast<BoxFormat>(3);
constexpr auto kNoEpsMode = static_cast<EpsMode>(2);
constexpr auto kNoUnit = static_cast<AngleUnit>(2);

const std::string kOffFour = " does not lie on a multiple of the 4 bytes of a ";
const std::string kOffEight = " does not lie on a multiple of the 8 bytes of a ";
const std::string kNotFloating = "; it must be float64, float32, float16 or bfloat16";
const std::string kNotIndices = "; it must be int32 or int64";
const std::string kNotNormalizer = "; it must be float64, float32, int64 or int32";
const std::string kNoElements =
    "; it must be one of float64, float32, float16, bfloat16, uint8, int16, int32, int64";
const std::string kNotNegative = "; it must not be negative";
const std::string kNotSet = " is not set; it must be the number of ";
const std::string kNoDTypeSet = ".dtype is not set; it must be that of ";
const std::string kNull = ".dtype is set it must not be";
const std::string kFour = ".slot_stride is 4, but a rotated box has 5 numbers";

/// To one byte behind where it should point.
template <class T>
void shift(T*& pointer) {
  pointer = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

/// What a call needs besides its problem: zeros to read, which any dtype has, room for what is
/// written, an execution. It cannot be copied: it points into itself.
struct Prepared {
  alignas(16) std::uint8_t zeros[2048] = {};
  alignas(16) float written[512];
  std::vector<double> memory = std::vector<double>(4096);
  Execution execution;
  Implementation implementation = boxloss::implementation("cpu/native");

  Prepared() {
    std::fill(std::begin(written), std::end(written), 99.0f);
    execution.workspace = memory.data();
    execution.workspace_bytes = memory.size() * sizeof(double);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  /// The room of one of four outputs.
  float* output(int i) { return written + 128 * i; }
  bool is_untouched() const {
    return std::all_of(std::begin(written), std::end(written), [](float x) { return x == 99; });
  }
};

template <class Call>
using Change = std::function<void(Call&)>;
template <class Call>
using Changes = std::vector<Change<Call>>;

/// What is wrong with a call that was right, and the whole message about it.
template <class Call>
struct Refusal {
  Change<Call> spoil;
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

/// What each operation refuses, but for the workspace.
template <class Call>
void require_shared_refused(void (Call::*run)() = &Call::run) {
  require_refused<InvalidArgument>(
      Refusals<Call>{{[](Call& c) { c.p.device = Device::kCuda; },
                      "the problem is on cuda, but cpu/native was asked to run it"},
                     {[](Call& c) { c.execution.parallel_for = {}; },
                      "parallel_for is empty; it must run tasks, as boxloss::parallel_for does"}},
      run);
}

template <class Call>
void require_ok(const Changes<Call>& changes, void (Call::*run)() = &Call::run) {
  for (const Change<Call>& change : changes) {
    CAPTURE(&change - changes.data());
    Call call;
    change(call);
    REQUIRE_NOTHROW((call.*run)());
  }
}

/// Neither arrays nor a workspace, by both implementations of the host.
template <class Call>
void require_nothing_needed(const Changes<Call>& changes) {
  for (const char* const name : {"cpu/native", "cpu/reference"}) {
    for (const Change<Call>& change : changes) {
      CAPTURE(name, &change - changes.data());
      Call call;
      call.implementation = implementation(name);
      call.forget_arrays();
      change(call);
      call.execution = {};
      REQUIRE(call.workspace_bytes() == 0);
      REQUIRE_NOTHROW(call.run());
    }
  }
}

/// It is known before there are arrays, and refused one byte below.
template <class Call>
void require_workspace_checked() {
  Call without_arrays;
  without_arrays.forget_arrays();
  const std::size_t bytes = without_arrays.workspace_bytes();
  REQUIRE(bytes > 0);
  const std::string needed = std::to_string(bytes);
  require_refused<InvalidArgument, Call>(
      {{[=](Call& c) { c.execution.workspace_bytes = bytes - 1; },
        "workspace has " + std::to_string(bytes - 1) + " bytes; this problem needs " + needed},
       {[](Call& c) { c.execution.workspace = nullptr; },
        "workspace is null; this problem needs " + needed + " bytes"}});
  require_ok<Call>({[=](Call& c) { c.execution.workspace_bytes = bytes; }});
}

}  // namespace boxloss
