// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "check.hpp"
#include "instrumented.hpp"
#include "subject.hpp"

namespace boxloss::conformance {
namespace {

Report check_case(const Implementation& implementation, const Case& c, Random& random) {
  const HostProblem host = make_problem(c, random);
  return check(implementation, host, c.values, random);
}

/// One element in a hundred may be left open by its inputs, but no more: a bound that excuses
/// everything proves nothing.
void require_ok(const Report& report) {
  INFO(report.text());
  REQUIRE(report.ok());
  REQUIRE(100 * report.undetermined() <= report.compared());
}

Case with_loss(Case c, Loss loss) {
  c.loss = loss;
  return c;
}

/// With the GIoU loss.
Case case_named(std::string_view name) {
  for (const Case& c : cases()) {
    if (c.name == name) return with_loss(c, Loss::kGiou);
  }
  throw std::out_of_range("no case is named " + std::string(name));
}

std::string describe(const Case& c) {
  const auto operand = [](const Operand& o) {
    return std::string(name_of(o.dtype)) + "/format " + std::to_string(static_cast<int>(o.format)) +
           "/layout " + std::to_string(static_cast<int>(o.layout));
  };
  const auto optional = [](const std::optional<DType>& d) { return d ? name_of(*d) : "none"; };
  const auto normalizer = [](const std::optional<CaseNormalizer>& n) {
    return n ? name_of(n->dtype) + (" by " + std::to_string(n->stride)) : "none";
  };
  return std::string(name_of(c.loss)) + ", pairing " + name_of(c.pairing.kind) + " by " +
         name_of(c.pairing.indices) + "/" + optional(c.pairing.pred_rows) + "/" +
         optional(c.pairing.target_rows) + ", pred " + operand(c.pred) + ", target " +
         operand(c.target) + ", shape (" + std::to_string(c.shape.images) + ", " +
         std::to_string(c.shape.slots) + ", " + std::to_string(c.shape.rows) + "; " +
         std::to_string(c.shape.sets) + ", " + std::to_string(c.shape.pairs) + "), reduction " +
         std::to_string(static_cast<int>(c.reduction)) + ", weight " + optional(c.weight) +
         ", normalizer " + normalizer(c.normalizer) + ", eps " + std::to_string(c.eps.value) +
         " mode " + std::to_string(static_cast<int>(c.eps.mode)) + ", values " +
         std::to_string(static_cast<int>(c.values));
}

TEST_CASE("named cases agree with the oracle") {
  const Implementation counted = counting(subject());
  for (const Loss loss : losses()) {
    DYNAMIC_SECTION(name_of(loss)) {
      for (const Case& c : cases_of(loss, cases())) {
        DYNAMIC_SECTION(c.name) {
          Random random(Catch::getSeed());
          require_ok(check_case(counted, c, random));
          // Else nothing says that it was the subject that ran.
          REQUIRE(calls().forward == 2);
          REQUIRE(calls().backward >= 3);
        }
      }
    }
  }
}

TEST_CASE("each extra alone agrees with the oracle") {
  const Implementation& implementation = subject();
  for (const Case& c : cases()) {
    DYNAMIC_SECTION(c.name) {
      Random random(Catch::getSeed());
      const HostProblem host = make_problem(with_loss(c, Loss::kGiou), random);
      require_ok(check_extras(implementation, host));
    }
  }
}

TEST_CASE("random mixes agree with the oracle") {
  const Implementation& implementation = subject();
  Random random(Catch::getSeed());
  std::int64_t compared = 0, undetermined = 0;
  for (int i = 0; i < 500; ++i) {
    const Case c = random_case(random);
    const Report report = check_case(implementation, c, random);
    INFO("mix " << i << ": " << describe(c) << "\n" << report.text());
    REQUIRE(report.ok());
    compared += report.compared();
    undetermined += report.undetermined();
  }
  REQUIRE(100 * undetermined <= compared);
}

TEST_CASE("a broken implementation is found out") {
  const Implementation& implementation = subject();
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    for (const Fault fault : kFaults) {
      CAPTURE(pass, fault);
      const Case c = case_named(fault == Fault::kNoNan ? "special" : "f32 f32");
      Random random(Catch::getSeed());
      REQUIRE_FALSE(check_case(broken(implementation, pass, fault), c, random).ok());
    }
  }
}

/// A case of the table, with another shape.
Case reshaped(const std::string& name, const Shape& shape) {
  Case c = case_named(name);
  c.shape = shape;
  return c;
}

constexpr Shape kSmall = {3, 7, 20, 3, 40};

TEST_CASE("offsets out of range are clamped") {
  const Implementation& implementation = subject();
  const std::vector<std::vector<std::int64_t>> list = {
      {-5, 3, 9, 1000}, {-7, -6, -5, -4}, {50, 60, 70, 80}, {0, 0, 20, 20}, {2, 4, 6, 8}};
  for (const char* name : {"bf16 u8", "f32 i64"}) {
    for (const auto& offsets : list) {
      const Case c = reshaped(name, kSmall);
      Random random(Catch::getSeed());
      const HostProblem host = make_problem(c, random, offsets);
      require_ok(check(implementation, host, c.values, random));
    }
  }
}

TEST_CASE("where nothing counts, a normalizer of 0 spoils nothing") {
  const auto require_unspoilt = [](const char* name, const std::vector<std::int64_t>& indices) {
    const Case c = case_named(name);
    Random random(Catch::getSeed());
    HostProblem host = make_problem(c, random, indices);
    for (std::int64_t set = 0; set < host.normalizer.count(); ++set) host.normalizer.set(set, 0);
    require_ok(check(subject(), host, c.values, random));
  };
  require_unspoilt("mean by i64", {0, 0});     // lengths
  require_unspoilt("mean by f32", {5, 5, 5});  // offsets
  require_unspoilt("indexed, mean by f64", {-1});
  require_unspoilt("indexed, mean by i32 of each set", {-1});
}

TEST_CASE("a normalizer beyond float32 divides a sum beyond it") {
  Case c = case_named("mean by f64");
  c.weight = DType::kF32;
  Random random(Catch::getSeed());
  HostProblem host = make_problem(c, random);
  // 340 losses, of which a GPU adds up to eight in float32.
  for (std::int64_t i = 0; i < host.weight.count(); ++i) {
    host.weight.set(i, 4e36 * host.weight.get(i));
  }
  host.normalizer.set(0, 1e39);
  require_ok(check(subject(), host, c.values, random));
}

/// Values mean nothing here; where memory is touched does.
void require_inside(const Implementation& implementation, const char* name,
                    const std::vector<std::int64_t>& indices) {
  for (const Reduction reduction : {Reduction::kNone, Reduction::kSum}) {
    Case c = reshaped(name, kSmall);
    c.reduction = reduction;
    Random random(Catch::getSeed());
    const HostProblem host = make_problem(c, random, indices);
    const ForwardResult forward = run_forward(implementation, host);
    REQUIRE(forward.sentinels_intact);
    const Upstream upstream =
        make_upstream(host, UpstreamLayout::kContiguous, Values::kPlain, random);
    const BackwardResult backward = run_backward(implementation, host, {upstream, {}},
                                                 forward.scale, all_gradients(host.problem));
    REQUIRE(backward.sentinels_intact);
  }
}

constexpr std::int64_t kMin32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMax32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMin64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();

TEST_CASE("no lengths or offsets lead outside") {
  const Implementation& implementation = subject();
  const std::vector<std::vector<std::int64_t>> narrow = {
      {20, 0, 20, 0}, {5, 3, 1, -1}, {kMax32, kMin32, kMax32, kMin32}, {kMin32, kMax32, 3, 1000}};
  const std::vector<std::vector<std::int64_t>> wide = {
      {kMax64, kMin64, kMax64, kMin64}, {kMin64, kMax64, 7, kMin64}, {19, kMax64, 0, 5}};
  for (const auto& indices : narrow) {
    require_inside(implementation, "bf16 u8", indices);  // offsets, int32
    require_inside(implementation, "f32 i64", indices);  // offsets, int64
    require_inside(implementation, "f16 f32", {indices.begin(), indices.end() - 1});  // lengths
  }
  for (const auto& indices : wide) {
    require_inside(implementation, "f32 i64", indices);
    require_inside(implementation, "f16 i32", {indices.begin(), indices.end() - 1});
  }
}

/// Of a list with 3 * 7 preds and 3 * 20 targets; here values mean something.
void require_excluded(const Implementation& implementation, const char* name,
                      const std::vector<std::int64_t>& rows) {
  for (const Reduction reduction : {Reduction::kNone, Reduction::kMean}) {
    Case c = reshaped(name, kSmall);
    c.reduction = reduction;
    Random random(Catch::getSeed());
    const HostProblem host = make_problem(c, random, rows);
    require_ok(check(implementation, host, c.values, random));
  }
}

TEST_CASE("pairs whose rows are not in their lists do not count") {
  const Implementation& implementation = subject();
  const std::vector<std::vector<std::int64_t>> narrow = {
      {0, 20, -1, 3, 21, 59, 60, 5}, {kMin32, 0, kMax32}, {-1, -21, -60, kMin32, kMax32, 1000}};
  const std::vector<std::vector<std::int64_t>> wide = {
      {kMin64, 7, kMax64, kMin32, kMax32}, {-1, 1ll << 32, 20, (1ll << 32) + 1, -(1ll << 32)}};
  for (const auto& rows : narrow) {
    require_excluded(implementation, "both by index", rows);
    require_excluded(implementation, "both by index, int64", rows);
    require_excluded(implementation, "indexed bf16 u8", rows);
  }
  for (const auto& rows : wide) require_excluded(implementation, "both by index, int64", rows);
}

void require_reshaped_ok(const char* name, const Shape& shape) {
  Random random(Catch::getSeed());
  require_ok(check_case(subject(), reshaped(name, shape), random));
}

// Too much work to do for each loss.

TEST_CASE("lists of more rows than one task takes") {
  require_reshaped_ok("indexed bf16 f32", {2, 300007, 1000, 2, 400});
}

TEST_CASE("more sets than a GPU has blocks") {
  require_reshaped_ok("both by index, sets", {1, 900, 700, 1400, 3});
  require_reshaped_ok("targets by index", {1, 0, 900, 1400, 3});
}

}  // namespace
}  // namespace boxloss::conformance
