// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "check_cost.hpp"
#include "instrumented.hpp"
#include "subject.hpp"

namespace boxloss::conformance {
namespace {

/// Skips the test, out loud, where the subject does not have matching costs.
const Implementation& cost_subject() {
  const Implementation& implementation = subject();
  bool serves = false;
  implementation.matching_cost.class_terms.for_each([&](ClassTerm) { serves = true; });
  if (!serves) SKIP(subject_name() << " does not serve the matching cost");
  return implementation;
}

Report check_case(const Implementation& implementation, const CostCase& c) {
  Random random(Catch::getSeed());
  return check_cost(implementation, make_cost(c, random));
}

/// One entry in a hundred may be left open by its inputs, but no more.
void require_ok(const Report& report) {
  INFO(report.text());
  REQUIRE(report.ok());
  REQUIRE(100 * report.undetermined() <= report.compared());
}

CostCase with_loss(CostCase c, Loss loss) {
  c.loss = loss;
  return c;
}

/// With the GIoU loss.
CostCase case_named(std::string_view name) {
  for (const CostCase& c : cost_cases()) {
    if (c.name == name) return with_loss(c, Loss::kGiou);
  }
  throw std::out_of_range("no case is named " + std::string(name));
}

std::string describe(const CostCase& c) {
  const auto operand = [](const Operand& o) {
    return std::string(name_of(o.dtype)) + "/" + name_of(o.format) + "/layout " +
           std::to_string(static_cast<int>(o.layout));
  };
  const auto number = [](auto n) { return std::to_string(n); };
  const CaseClasses& classes = c.classes;
  return std::string(name_of(c.loss)) + ", " + name_of(classes.term) + " of " +
         name_of(classes.scores) + "/layout " + number(static_cast<int>(classes.layout)) +
         ", labels " + name_of(classes.labels) + ", alpha " + number(classes.alpha) + ", gamma " +
         number(classes.gamma) + ", pred " + operand(c.pred) + ", target " + operand(c.target) +
         ", offsets " + name_of(c.offsets) + ", shape (" + number(c.shape.layers) + ", " +
         number(c.shape.images) + ", " + number(c.shape.queries) + ", " + number(c.shape.columns) +
         "; " + number(c.shape.classes) + "), weights " + number(c.weights.iou) + "/" +
         number(c.weights.l1) + "/" + number(c.weights.class_term) + ", eps " +
         number(c.eps.value) + " mode " + number(static_cast<int>(c.eps.mode)) + ", nonfinite " +
         (c.nonfinite ? number(*c.nonfinite) : "none") + ", values " +
         number(static_cast<int>(c.values));
}

TEST_CASE("named costs agree with the oracle") {
  const Implementation counted = counting(cost_subject());
  for (const Loss loss : losses()) {
    DYNAMIC_SECTION(name_of(loss)) {
      for (const CostCase& c : cases_of(loss, cost_cases())) {
        DYNAMIC_SECTION(c.name) {
          require_ok(check_case(counted, c));
          // Else nothing says that it was the subject that ran.
          REQUIRE(calls().cost == 2);
        }
      }
    }
  }
}

TEST_CASE("large costs agree with the oracle") {
  const Implementation& implementation = cost_subject();
  for (const CostCase& c : large_cost_cases()) {
    DYNAMIC_SECTION(c.name) {
      Random random(Catch::getSeed());
      const HostCost host = make_cost(with_loss(c, Loss::kGiou), random);
      require_ok(check_cost(implementation, host, {Alignment::kWide}));
    }
  }
}

TEST_CASE("random mixes of costs agree with the oracle") {
  const Implementation& implementation = cost_subject();
  Random random(Catch::getSeed());
  std::int64_t compared = 0, undetermined = 0;
  for (int i = 0; i < 300; ++i) {
    const CostCase c = random_cost_case(random);
    const Report report = check_cost(implementation, make_cost(c, random));
    INFO("mix " << i << ": " << describe(c) << "\n" << report.text());
    REQUIRE(report.ok());
    compared += report.compared();
    undetermined += report.undetermined();
  }
  REQUIRE(100 * undetermined <= compared);
}

TEST_CASE("a broken matching cost is found out") {
  const Implementation& implementation = cost_subject();
  for (const Fault fault : kFaults) {
    CAPTURE(fault);
    const CostCase c = case_named(fault == Fault::kNoNan ? "special" : "one image, all columns");
    REQUIRE_FALSE(check_case(broken(implementation, Pass::kCost, fault), c).ok());
  }
}

constexpr std::int64_t kMin32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMax32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMin64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();

/// A case of the table with three images and twenty columns.
HostCost small_cost(const char* name, const std::vector<std::int64_t>& offsets) {
  CostCase c = case_named(name);
  c.shape = {2, 3, 7, 20, 5};
  Random random(Catch::getSeed());
  return make_cost(c, random, offsets);
}

TEST_CASE("a cost's offsets out of range are clamped") {
  const Implementation& implementation = cost_subject();
  const std::vector<std::vector<std::int64_t>> list = {
      {-5, 3, 9, 1000}, {-7, -6, -5, -4}, {50, 60, 70, 80}, {0, 0, 20, 20}, {kMin32, 4, 6, kMax32}};
  for (const auto& offsets : list) {
    for (const char* name : {"softmax", "given, layers"}) {  // int64, int32
      require_ok(check_cost(implementation, small_cost(name, offsets)));
    }
  }
  require_ok(check_cost(implementation, small_cost("focal", {kMin64, 7, 11, kMax64})));
  // Whose lower halves would be in range.
  require_ok(check_cost(implementation, small_cost("focal", {-(1ll << 32), 7, 11, 1ll << 32})));
}

/// Values mean nothing here; where memory is touched does.
TEST_CASE("no offsets lead outside of a cost") {
  const Implementation& implementation = cost_subject();
  const std::vector<std::vector<std::int64_t>> narrow = {
      {20, 0, 20, 0}, {5, 3, 1, -1}, {kMax32, kMin32, kMax32, kMin32}, {kMin32, kMax32, 3, 1000}};
  const std::vector<std::vector<std::int64_t>> wide = {
      {kMax64, kMin64, kMax64, kMin64}, {kMin64, kMax64, 7, kMin64}, {19, kMax64, 0, 5}};
  const auto require_inside = [&](const char* name, const std::vector<std::int64_t>& offsets) {
    REQUIRE(run_cost(implementation, small_cost(name, offsets)).sentinels_intact);
  };
  for (const auto& offsets : narrow) {
    for (const char* name : {"softmax", "given", "focal, layers", "given, layers"}) {
      require_inside(name, offsets);
    }
  }
  for (const auto& offsets : wide) {
    for (const char* name : {"softmax", "given"}) require_inside(name, offsets);
  }
}

}  // namespace
}  // namespace boxloss::conformance
