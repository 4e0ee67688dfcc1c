// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include "operations.hpp"

/// What every operation is tested for.
namespace boxloss::conformance {
namespace {

/// Can it be in any of them? Integers are never NaN.
bool can_be_in(const Results& results, Fault fault) {
  return fault != Fault::kNoNan ||
         std::any_of(results.outputs.begin(), results.outputs.end(), [](const Result& output) {
           return output.values && is_floating(output.values->dtype());
         });
}

TEMPLATE_LIST_TEST_CASE("named cases agree with the oracle", "", Operations) {
  const Implementation counted = counting(subject_for<TestType>());
  for (const auto& group : TestType::groups()) {
    DYNAMIC_SECTION(group.name) {
      for (const auto& c : group.cases) {
        DYNAMIC_SECTION(c.name) {
          const Report report = check_case<TestType>(check, counted, c);
          require_ok(report);
          // Else nothing says that it was the subject that ran.
          REQUIRE(counted_calls() == report.runs());
        }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("further cases agree with the oracle", "", Operations) {
  const Implementation& implementation = subject_for<TestType>();
  for (const auto& c : TestType::further_cases()) {
    INFO(c.name << ": " << TestType::describe(c));
    require_ok(check_case<TestType>(check, implementation, c));
  }
}

TEMPLATE_LIST_TEST_CASE("random mixes agree with the oracle", "", Operations) {
  const Implementation& implementation = subject_for<TestType>();
  Random random(Catch::getSeed());
  std::int64_t compared = 0, undetermined = 0;
  for (int i = 0; i < TestType::kMixes; ++i) {
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
  for (const auto& c : TestType::wild_cases()) {
    INFO(c.name << ": " << TestType::describe(c));
    require_ok(check_case<TestType>(check_memory, implementation, c));
  }
}

TEMPLATE_LIST_TEST_CASE("the same input gives the same bits", "", Operations) {
  const Implementation& implementation = subject_for<TestType>();
  for (const auto& c : TestType::cases_for_bits()) {
    INFO(TestType::describe(c));
    require_ok(check_case<TestType>(check_bits, implementation, c));
  }
}

TEMPLATE_LIST_TEST_CASE("a broken implementation is found out", "", Operations) {
  const Implementation& implementation = subject_for<TestType>();
  for (const Fault fault : kFaults) {
    const auto c = case_named(TestType::table(), TestType::case_for(fault));
    Random random(Catch::getSeed());
    const auto host = TestType::make(c, random);
    // Each function must be found out by itself, in each output that the fault changes.
    for (const Call& call : TestType::calls(c, host, random)) {
      if (!call.ways[0].is_served(implementation)) continue;
      const Results results = call.ways[0].run(implementation, boxloss::parallel_for);
      int found = 0;
      for (std::size_t output = 0; output < results.outputs.size(); ++output) {
        CAPTURE(fault, call.name, output);
        const Report report = check(broken(implementation, fault, output), {call});
        REQUIRE(report.ok() == !is_spoiled());
        if (is_spoiled()) ++found;
      }
      CAPTURE(fault, call.name);
      REQUIRE((found > 0 || !can_be_in(results, fault)));
    }
  }
}

}  // namespace
}  // namespace boxloss::conformance
