// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>

#include "operations.hpp"

/// What every operation is tested for.
namespace boxloss::conformance {
namespace {

TEMPLATE_LIST_TEST_CASE("named cases agree with the oracle", "", Operations) {
  const Implementation& implementation = subject_for<TestType>();
  for (const auto& group : TestType::groups()) {
    DYNAMIC_SECTION(group.name) {
      for (const auto& c : group.cases) {
        DYNAMIC_SECTION(c.name) { require_ok(check_case<TestType>(check, implementation, c)); }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("further cases agree with the oracle", "", Operations) {
  const Implementation& implementation = subject_for<TestType>();
  const auto more = TestType::more_cases();
  for (const auto& c : more.further) {
    INFO(c.name << ": " << TestType::describe(c));
    require_ok(check_case<TestType>(check, implementation, c));
  }
}

TEMPLATE_LIST_TEST_CASE("random mixes agree with the oracle", "", Operations) {
  const Implementation& implementation = subject_for<TestType>();
  Random random(Catch::getSeed());
  std::int64_t compared = 0, undetermined = 0;
  for (int i = 0; i < TestType::kMixes / mixes_divisor(); ++i) {
    const auto c = TestType::random_case(random);
    const auto host = TestType::make(c, random);
    const Report report = check(implementation, TestType::calls(c, host, random));
    INFO("mix " << i << ": " << TestType::describe(c) << "\n" << report.text());
    REQUIRE(report.ok());
    compared += report.compared();
    undetermined += report.undetermined();
  }
  if (compared == 0) SKIP(subject_name() << " serves none of the mixes");
  REQUIRE(100 * undetermined <= compared);
}

TEMPLATE_LIST_TEST_CASE("no indices lead outside", "", Operations) {
  const Implementation& implementation = subject_for<TestType>();
  const auto more = TestType::more_cases();
  for (const auto& c : more.wild) {
    INFO(c.name << ": " << TestType::describe(c));
    require_ok(check_case<TestType>(check_memory, implementation, c));
  }
}

TEMPLATE_LIST_TEST_CASE("the same input gives the same bits", "", Operations) {
  const Implementation& implementation = subject_for<TestType>();
  const auto more = TestType::more_cases();
  for (const auto& c : more.for_bits) {
    INFO(TestType::describe(c));
    require_ok(check_case<TestType>(check_bits, implementation, c));
  }
}

// --- What the suite tests of itself; the errors that code can have are in tools/seeded_errors.txt.

/// Else it might not be the subject that runs.
TEMPLATE_LIST_TEST_CASE("an implementation without functions refuses all", "", Operations) {
  Implementation none;
  none.name = "cpu/none";
  none.device = subject_for<TestType>().device;
  const auto c = case_named(TestType::table(), TestType::kPlainCase);
  const Report report = check_case<TestType>(check, none, c);
  require_ok(report);
  REQUIRE(report.runs() == 0);
}

/// What can be wrong with an output.
enum class Fault {
  kRounding,   ///< values are off by 256 roundings of float32, integers by 1
  kUnwritten,  ///< nothing is written
  kNoNan,      ///< NaN is swallowed
};

Array with_fault(Array values, Fault fault) {
  if (fault == Fault::kUnwritten) {
    std::fill_n(static_cast<std::byte*>(values.data()), values.size_bytes(),
                poison_of(values.dtype()));
    return values;
  }
  for (std::int64_t i = 0; i < values.count(); ++i) {
    const double value = values.get(i);
    if (fault == Fault::kRounding) {
      values.set(i, is_floating(values.dtype()) ? value * (1 + 0x1p-16) : value + 1);
    }
    if (fault == Fault::kNoNan && std::isnan(value)) values.set(i, 0);
  }
  return values;
}

/// Can it be in any of them? Integers are never NaN.
bool can_be_in(const Results& results, Fault fault) {
  return fault != Fault::kNoNan ||
         std::any_of(results.outputs.begin(), results.outputs.end(), [](const Result& output) {
           return output.values && is_floating(output.values->dtype());
         });
}

TEMPLATE_LIST_TEST_CASE("a wrong output is found out", "", Operations) {
  const Implementation& implementation = subject_for<TestType>();
  const Fault fault = GENERATE(Fault::kRounding, Fault::kUnwritten, Fault::kNoNan);
  const auto c = case_named(TestType::table(),
                            fault == Fault::kNoNan ? TestType::kNanCase : TestType::kPlainCase);
  Random random(Catch::getSeed());
  const auto host = TestType::make(c, random);
  // Each function must be found out by itself, in each output that the fault changes.
  for (const Call& call : TestType::calls(c, host, random)) {
    if (!call.ways[0].is_served(implementation)) continue;
    const Results right = call.ways[0].run(implementation, boxloss::parallel_for);
    const Judge judge = call.judge();
    int found = 0;
    for (std::size_t output = 0; output < right.outputs.size(); ++output) {
      Results wrong = right;
      std::optional<Array>& values = wrong.outputs[output].values;
      if (values) values = with_fault(*values, fault);
      if (same_bits(wrong, right)) continue;
      CAPTURE(fault, call.name, output);
      Report report;
      judge(wrong, report);
      REQUIRE_FALSE(report.ok());
      ++found;
    }
    CAPTURE(fault, call.name);
    REQUIRE((found > 0 || !can_be_in(right, fault)));
  }
}

TEST_CASE("what is written beside an output is found out") {
  const DeviceMemory& memory = *device_memory(subject().device);
  constexpr std::ptrdiff_t kBytes = 40;
  for (const std::ptrdiff_t at : {std::ptrdiff_t{-1}, kBytes}) {
    const Output output(memory, kBytes);
    REQUIRE(output.sentinels_intact());
    const std::byte zero{0};
    memory.copy_in(static_cast<std::byte*>(output.data()) + at, &zero, 1);
    REQUIRE_FALSE(output.sentinels_intact());
  }
}

}  // namespace
}  // namespace boxloss::conformance
