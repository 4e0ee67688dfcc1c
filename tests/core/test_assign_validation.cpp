// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace boxloss {
namespace {

using Catch::Matchers::Message;

/// Two layers of three images with four queries in two groups, and five columns: right, until a
/// test spoils it.
struct AssignCall {
  alignas(8) float costs[2 * 4 * 5] = {};
  alignas(8) std::int32_t offsets[8] = {0, 1, 2, 5};
  alignas(8) std::int64_t pred_index[2 * 2 * 5 + 1];
  alignas(8) std::int64_t target_index[2 * 2 * 5 + 1];
  alignas(8) std::int64_t target_of_query[2 * 3 * 4 + 1];
  std::vector<double> workspace = std::vector<double>(4096);

  AssignProblem problem;
  AssignOutputs outputs = {pred_index, target_index, target_of_query};
  Execution execution;
  const Implementation* implementation = &boxloss::implementation("cpu/native");

  AssignCall() {
    problem.layers = 2;
    problem.images = 3;
    problem.queries = 4;
    problem.columns = 5;
    problem.cost = {costs, DType::kF32, 20, 5, 1};
    problem.offsets = {offsets, DType::kI32};
    problem.groups = 2;
    execution.workspace = workspace.data();
    execution.workspace_bytes = workspace.size() * sizeof(double);
    for (std::int64_t& index : pred_index) index = 99;
    for (std::int64_t& index : target_index) index = 99;
    for (std::int64_t& index : target_of_query) index = 99;
  }
  AssignCall(const AssignCall&) = delete;
  AssignCall& operator=(const AssignCall&) = delete;

  void run() { assign(*implementation, problem, outputs, execution); }

  bool is_untouched() const {
    const auto is_old = [](const auto& indices) {
      for (const std::int64_t index : indices) {
        if (index != 99) return false;
      }
      return true;
    };
    return is_old(pred_index) && is_old(target_index) && is_old(target_of_query);
  }
};

using Spoil = std::function<void(AssignCall&)>;

template <class Error>
void require_refused(const Spoil& spoil, const std::string& text) {
  AssignCall call;
  spoil(call);
  REQUIRE_THROWS_MATCHES(call.run(), Error, Message(text));
  REQUIRE(call.is_untouched());
}

void require_invalid(const Spoil& spoil, const std::string& text) {
  require_refused<InvalidArgument>(spoil, text);
}

void require_unsupported(const Spoil& spoil, const std::string& text) {
  require_refused<Unsupported>(spoil, text);
}

void require_ok(const Spoil& change) {
  AssignCall call;
  change(call);
  REQUIRE_NOTHROW(call.run());
}

constexpr std::int64_t kMost32 = 2147483647, kMany = std::int64_t{1} << 33;

TEST_CASE("an assignment without fault is not refused") {
  AssignCall call;
  call.run();
  REQUIRE_FALSE(call.is_untouched());
}

TEST_CASE("an assignment on another device is refused") {
  require_invalid([](AssignCall& c) { c.problem.device = Device::kCuda; },
                  "the problem is on cuda, but cpu/native was asked to run it");
}

TEST_CASE("an implementation without an assignment refuses it") {
  Implementation lossy = implementation("cpu/native");
  lossy.assign = {};
  require_unsupported([&](AssignCall& c) { c.implementation = &lossy; },
                      "cpu/native does not serve assign");
  REQUIRE_THROWS_MATCHES(assign_workspace_bytes(lossy, AssignCall().problem), Unsupported,
                         Message("cpu/native does not serve assign"));
}

TEST_CASE("an assignment's dtypes are checked") {
  require_unsupported([](AssignCall& c) { c.problem.cost.dtype = DType::kBF16; },
                      "cost is bfloat16; it must be float32 or float64");
  require_unsupported([](AssignCall& c) { c.problem.cost.dtype = DType::kI32; },
                      "cost is int32; it must be float32 or float64");
  require_unsupported([](AssignCall& c) { c.problem.offsets.dtype = DType::kF32; },
                      "offsets is float32; it must be int32 or int64");
  require_unsupported([](AssignCall& c) { c.problem.index = DType::kU8; },
                      "index is uint8; it must be int32 or int64");
  AssignProblem options;  // has no sizes
  options.offsets.dtype = DType::kF32;
  REQUIRE_THROWS_MATCHES(check_options(options), Unsupported,
                         Message("offsets is float32; it must be int32 or int64"));
  options.offsets.dtype = DType::kI32;
  REQUIRE_NOTHROW(check_options(options));
}

TEST_CASE("an assignment's sizes are not negative") {
  const auto spoilt = [](std::int64_t AssignProblem::* size) {
    return [size](AssignCall& c) { c.problem.*size = -1; };
  };
  const std::string negative = " is -1; it must not be negative";
  require_invalid(spoilt(&AssignProblem::layers), "layers" + negative);
  require_invalid(spoilt(&AssignProblem::images), "images" + negative);
  require_invalid(spoilt(&AssignProblem::queries), "queries" + negative);
  require_invalid(spoilt(&AssignProblem::columns), "columns" + negative);
}

TEST_CASE("what was forgotten of an assignment is named") {
  const std::string unset = " is not set; it must be the number of ";
  require_invalid([](AssignCall& c) { c.problem.images = AssignProblem().images; },
                  "images" + unset + "images that share the columns");
  require_invalid([](AssignCall& c) { c.problem.queries = AssignProblem().queries; },
                  "queries" + unset + "queries of each image");
  require_invalid([](AssignCall& c) { c.problem.columns = AssignProblem().columns; },
                  "columns" + unset + "columns of cost");
  require_invalid([](AssignCall& c) { c.problem.offsets = {}; },
                  "offsets.dtype is not set; it must be that of (images + 1) integers");
  require_invalid([](AssignCall& c) { c.execution.parallel_for = {}; },
                  "parallel_for is empty; it must run tasks, as boxloss::parallel_for does");
  require_invalid([](AssignCall& c) { c.execution.workspace = c.workspace.data() + 1; },
                  "workspace does not lie on a multiple of 16 bytes");
}

TEST_CASE("groups divide the queries") {
  const std::string rest = "; it must be at least 1, and divide the 4 queries";
  for (const std::int64_t groups : {0, -1, -2, 3, 5, 8}) {
    require_invalid([&](AssignCall& c) { c.problem.groups = groups; },
                    "groups is " + std::to_string(groups) + rest);
  }
  require_ok([](AssignCall& c) {
    c.problem.groups = 4;
    c.outputs = {nullptr, nullptr, c.target_of_query};
  });
}

TEST_CASE("queries and columns are 32-bit numbers") {
  require_invalid([](AssignCall& c) { c.problem.queries = kMany; },
                  "cost has 8589934592 queries and 5 columns; it can have 2^31 - 1 of each");
  require_invalid([](AssignCall& c) { c.problem.columns = kMost32 + 1; },
                  "cost has 4 queries and 2147483648 columns; it can have 2^31 - 1 of each");
}

TEST_CASE("what the outputs' dtype cannot count is refused") {
  require_invalid(
      [](AssignCall& c) {
        c.problem.index = DType::kI32;
        c.problem.images = 268435456;
      },
      "there are 2 layers of 268435456 images of 4 queries, and 2 groups of 5 columns, which is "
      "more than int32 can count");
  require_invalid(
      [](AssignCall& c) {
        c.problem.index = DType::kI32;
        c.problem.columns = 536870912;
      },
      "there are 2 layers of 3 images of 4 queries, and 2 groups of 536870912 columns, which is "
      "more than int32 can count");
  require_invalid(
      [](AssignCall& c) {
        c.problem.layers = kMany;
        c.problem.images = kMany;
      },
      "there are 8589934592 layers of 8589934592 images of 4 queries, and 2 groups of 5 columns, "
      "which is more than int64 can count");
  require_invalid(
      [](AssignCall& c) {  // whose workspace would have 2^64 bytes
        c.problem.cost = {c.costs, DType::kF64, 0, 0, 0};
        c.problem.queries = c.problem.columns = 1073741824;
      },
      "cost has 2 layers of 1073741824 queries and 1073741824 columns, which is more than 64 bits "
      "can count");
  // The most that are not.
  AssignCall call;
  call.problem.index = DType::kI32;
  call.problem.layers = 1;
  call.problem.queries = call.problem.groups = 1;
  call.problem.images = call.problem.columns = kMost32;
  REQUIRE_NOTHROW(assign_workspace_bytes(*call.implementation, call.problem));
  call.problem.layers = 2;
  REQUIRE_THROWS_AS(assign_workspace_bytes(*call.implementation, call.problem), InvalidArgument);
  call.problem.index = DType::kI64;
  REQUIRE_NOTHROW(assign_workspace_bytes(*call.implementation, call.problem));
}

TEST_CASE("an assignment's costs are checked") {
  require_invalid([](AssignCall& c) { c.problem.cost.layer_stride = -20; },
                  "cost has a negative stride: -20 by layer, 5 by query, 1 by column");
  require_invalid([](AssignCall& c) { c.problem.cost.query_stride = -5; },
                  "cost has a negative stride: 20 by layer, -5 by query, 1 by column");
  require_invalid([](AssignCall& c) { c.problem.cost.column_stride = -1; },
                  "cost has a negative stride: 20 by layer, 5 by query, -1 by column");
  require_invalid([](AssignCall& c) { c.problem.cost.data = nullptr; }, "cost.data is null");
  require_invalid([](AssignCall& c) { c.problem.offsets.data = nullptr; },
                  "offsets.data is null; where offsets.dtype is set it must not be");
  require_ok([](AssignCall& c) { c.problem.cost = {c.costs, DType::kF32, 0, 0, 0}; });
}

TEST_CASE("an assignment's outputs may be left out") {
  require_ok([](AssignCall& c) { c.outputs = {c.pred_index, nullptr, nullptr}; });
  require_ok([](AssignCall& c) { c.outputs = {nullptr, c.target_index, nullptr}; });
  require_ok([](AssignCall& c) { c.outputs = {}; });
}

/// One byte behind where it should be.
template <class T>
void* off(T* pointer) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

TEST_CASE("an assignment's array that does not lie on its elements is refused") {
  const std::string off_four = " does not lie on a multiple of the 4 bytes of a ";
  const std::string off_eight = " does not lie on a multiple of the 8 bytes of a ";
  require_invalid([](AssignCall& c) { c.problem.cost.data = off(c.costs); },
                  "cost" + off_four + "float32");
  require_invalid(
      [](AssignCall& c) {
        c.problem.cost.data = c.costs + 1;
        c.problem.cost.dtype = DType::kF64;
      },
      "cost" + off_eight + "float64");
  require_invalid([](AssignCall& c) { c.problem.offsets.data = off(c.offsets); },
                  "offsets" + off_four + "int32");
  require_invalid([](AssignCall& c) { c.problem.offsets = {c.offsets + 1, DType::kI64}; },
                  "offsets" + off_eight + "int64");
  require_invalid([](AssignCall& c) { c.outputs.pred_index = off(c.pred_index); },
                  "outputs.pred_index" + off_eight + "int64");
  require_invalid([](AssignCall& c) { c.outputs.target_index = off(c.target_index); },
                  "outputs.target_index" + off_eight + "int64");
  require_invalid([](AssignCall& c) { c.outputs.target_of_query = off(c.target_of_query); },
                  "outputs.target_of_query" + off_eight + "int64");
  require_invalid(
      [](AssignCall& c) {
        c.problem.index = DType::kI32;
        c.outputs.target_of_query = off(c.target_of_query);
      },
      "outputs.target_of_query" + off_four + "int32");
}

TEST_CASE("an assignment's workspace is checked") {
  AssignCall call;
  const std::size_t bytes = assign_workspace_bytes(*call.implementation, call.problem);
  REQUIRE(bytes > 0);
  call.problem.cost.data = call.problem.offsets.data = nullptr;  // which it does not look at
  REQUIRE(assign_workspace_bytes(*call.implementation, call.problem) == bytes);
  const std::string needed = std::to_string(bytes);
  require_invalid(
      [&](AssignCall& c) { c.execution.workspace_bytes = bytes - 1; },
      "workspace has " + std::to_string(bytes - 1) + " bytes; this problem needs " + needed);
  require_invalid([](AssignCall& c) { c.execution.workspace = nullptr; },
                  "workspace is null; this problem needs " + needed + " bytes");
  require_ok([&](AssignCall& c) { c.execution.workspace_bytes = bytes; });
}

TEST_CASE("what is empty needs neither arrays nor a workspace") {
  const auto require_nothing_of = [](const char* name, std::int64_t AssignProblem::* size) {
    INFO(name);
    AssignCall call;
    call.implementation = &implementation(name);
    call.problem.*size = 0;
    call.problem.cost.data = call.problem.offsets.data = nullptr;
    REQUIRE(assign_workspace_bytes(*call.implementation, call.problem) == 0);
    call.execution = {};
    REQUIRE_NOTHROW(call.run());
    const AssignProblem& p = call.problem;
    for (std::int64_t i = 0; i <= 20; ++i) {
      const std::int64_t expected = i < p.layers * p.groups * p.columns ? -1 : 99;
      REQUIRE(call.pred_index[i] == expected);
      REQUIRE(call.target_index[i] == expected);
    }
    for (std::int64_t i = 0; i <= 24; ++i) {
      REQUIRE(call.target_of_query[i] == (i < p.layers * p.images * p.queries ? -1 : 99));
    }
  };
  const auto require_nothing = [&](std::int64_t AssignProblem::* size) {
    require_nothing_of("cpu/native", size);
    require_nothing_of("cpu/reference", size);
  };
  require_nothing(&AssignProblem::layers);
  require_nothing(&AssignProblem::images);
  require_nothing(&AssignProblem::queries);
  require_nothing(&AssignProblem::columns);
}

}  // namespace
}  // namespace boxloss
