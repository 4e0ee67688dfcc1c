// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

namespace boxloss {
namespace {

/// Two layers of three images with four queries in two groups, and five columns: right, until a
/// test spoils it.
struct AssignCall {
  alignas(8) float costs[2 * 4 * 5] = {};
  alignas(8) std::int32_t offsets[8] = {0, 1, 2, 5};
  Output<std::int64_t, 2 * 2 * 5 + 1> pred_index, target_index;
  Output<std::int64_t, 2 * 3 * 4 + 1> target_of_query;

  AssignProblem p;
  AssignOutputs outputs = {pred_index.values, target_index.values, target_of_query.values};
  Workspace workspace;
  Implementation implementation = boxloss::implementation("cpu/native");

  AssignCall() {
    p.layers = 2;
    p.images = 3;
    p.queries = 4;
    p.columns = 5;
    p.cost = {costs, DType::kF32, 20, 5, 1};
    p.offsets = {offsets, DType::kI32};
    p.groups = 2;
  }

  void run() { assign(implementation, p, outputs, workspace.execution); }
  bool is_untouched() const {
    return pred_index.is_untouched() && target_index.is_untouched() &&
           target_of_query.is_untouched();
  }
};

using Rows = Refusals<AssignCall>;

/// One image without offsets, with lengths of its layers.
void be_alone(AssignCall& c) {
  c.p.images = c.p.groups = 1;
  c.p.offsets = {};
  c.p.lengths = {c.offsets, DType::kI32};
}

// clang-format off
TEST_CASE("an assignment that is wrong is refused") {
  const std::string rest = ", which is more than ";
  const std::string groups = "; it must be at least 1, and divide the 4 queries";
  require_refused<InvalidArgument>(Rows{
      {[](AssignCall& c) { c.p.device = Device::kCuda; }, "the problem is on cuda, but cpu/native was asked to run it"},
      // --- sizes
      {[](AssignCall& c) { c.p.layers = -1; }, "layers is -1; it must not be negative"},
      {[](AssignCall& c) { c.p.images = AssignProblem().images; }, "images is not set; it must be the number of images that share the columns"},
      {[](AssignCall& c) { c.p.queries = AssignProblem().queries; }, "queries is not set; it must be the number of queries of each image"},
      {[](AssignCall& c) { c.p.columns = AssignProblem().columns; }, "columns is not set; it must be the number of columns of cost"},
      {[](AssignCall& c) { c.p.groups = 0; }, "groups is 0" + groups},
      {[](AssignCall& c) { c.p.groups = -1; }, "groups is -1" + groups},
      {[](AssignCall& c) { c.p.groups = 3; }, "groups is 3" + groups},
      {[](AssignCall& c) { c.p.queries = kMany; }, "cost has 8589934592 queries and 5 columns; it can have 2^31 - 1 of each"},
      {[](AssignCall& c) { c.p.columns = kMost32 + 1; }, "cost has 4 queries and 2147483648 columns; it can have 2^31 - 1 of each"},
      {[](AssignCall& c) { c.p.index = DType::kI32; c.p.images = 268435456; }, "there are 2 layers of 268435456 images of 4 queries, and 2 groups of 5 columns" + rest + "int32 can count"},
      {[](AssignCall& c) { c.p.index = DType::kI32; c.p.columns = 536870912; }, "there are 2 layers of 3 images of 4 queries, and 2 groups of 536870912 columns" + rest + "int32 can count"},
      {[](AssignCall& c) { c.p.layers = c.p.images = kMany; }, "there are 8589934592 layers of 8589934592 images of 4 queries, and 2 groups of 5 columns" + rest + "int64 can count"},
      {[](AssignCall& c) {  // whose workspace would have 2^64 bytes
         c.p.cost = {c.costs, DType::kF64, 0, 0, 0};
         c.p.queries = c.p.columns = 1073741824;
       }, "cost has 2 layers of 1073741824 queries and 1073741824 columns" + rest + "64 bits can count"},
      // --- arrays
      {[](AssignCall& c) { c.p.cost.layer_stride = -20; }, "cost has a negative stride: -20 by layer, 5 by query, 1 by column"},
      {[](AssignCall& c) { c.p.cost.query_stride = -5; }, "cost has a negative stride: 20 by layer, -5 by query, 1 by column"},
      {[](AssignCall& c) { c.p.cost.column_stride = -1; }, "cost has a negative stride: 20 by layer, 5 by query, -1 by column"},
      {[](AssignCall& c) { c.p.cost.data = nullptr; }, "cost.data is null"},
      {[](AssignCall& c) { shift(c.p.cost.data); }, "cost" + kOffFour + "float32"},
      {[](AssignCall& c) { c.p.offsets = {}; }, "offsets.dtype is not set; it must be that of (images + 1) integers"},
      {[](AssignCall& c) { c.p.lengths = {c.offsets, DType::kI32}; }, "lengths are for one image, without offsets and groups"},
      {[](AssignCall& c) { be_alone(c); c.p.groups = 2; }, "lengths are for one image, without offsets and groups"},
      {[](AssignCall& c) { be_alone(c); c.p.lengths.data = nullptr; }, "lengths.data is null; where lengths.dtype is set it must not be"},
      {[](AssignCall& c) { c.p.cost_limit = kNan; }, "cost_limit is nan; it must be a number, or +inf for none"},
      {[](AssignCall& c) { c.p.cost_limit = -kInfinity; }, "cost_limit is -inf; it must be a number, or +inf for none"},
      {[](AssignCall& c) { c.p.cost_limit = 2; c.p.maximize = true; }, "cost_limit and maximize exclude each other: a limit is for costs"},
      {[](AssignCall& c) { c.p.offsets.data = nullptr; }, "offsets.data is null; where offsets.dtype is set it must not be"},
      {[](AssignCall& c) { shift(c.outputs.pred_index); }, "outputs.pred_index" + kOffEight + "int64"},
      {[](AssignCall& c) { shift(c.outputs.target_index); }, "outputs.target_index" + kOffEight + "int64"},
      {[](AssignCall& c) { shift(c.outputs.target_of_query); c.p.index = DType::kI32; }, "outputs.target_of_query" + kOffFour + "int32"},
      {[](AssignCall& c) { shift(c.outputs.query_of_column); }, "outputs.query_of_column" + kOffEight + "int64"},
  });
  require_refused<Unsupported>(Rows{
      {[](AssignCall& c) { c.p.cost.dtype = DType::kNone; }, "cost is none; it must be one of float64, float32, float16, bfloat16, uint8, int16, int32, int64"},
      {[](AssignCall& c) { be_alone(c); c.p.lengths.dtype = DType::kF32; }, "lengths is float32" + kNotIndices},
      {[](AssignCall& c) { c.p.offsets.dtype = DType::kF32; }, "offsets is float32" + kNotIndices},
      {[](AssignCall& c) { c.p.index = DType::kU8; }, "index is uint8" + kNotIndices},
      {[](AssignCall& c) { c.implementation.assign = {}; }, "cpu/native does not serve assign"},
  });
}
// clang-format on

TEST_CASE("an assignment without fault is not refused") {
  require_ok<AssignCall>([](AssignCall&) {});
  require_ok<AssignCall>([](AssignCall& c) { c.p.groups = 4; });
  require_ok<AssignCall>([](AssignCall& c) { c.p.cost = {c.costs, DType::kF32, 0, 0, 0}; });
  require_ok<AssignCall>([](AssignCall& c) { c.outputs = {}; });
  require_ok<AssignCall>(be_alone);
  require_ok<AssignCall>([](AssignCall& c) {
    be_alone(c);
    c.p.lengths = {};
    c.p.cost_limit = 1;
  });
  AssignProblem options;  // which have no sizes
  options.offsets.dtype = DType::kI32;
  REQUIRE_NOTHROW(check_options(options));
  options.offsets.dtype = DType::kF32;
  REQUIRE_THROWS_AS(check_options(options), Unsupported);
}

TEST_CASE("as much as the outputs' dtype can count is not refused") {
  AssignCall call;
  call.p.index = DType::kI32;
  call.p.layers = 1;
  call.p.queries = call.p.groups = 1;
  call.p.images = call.p.columns = kMost32;
  REQUIRE_NOTHROW(assign_workspace_bytes(call.implementation, call.p));
  call.p.layers = 2;
  REQUIRE_THROWS_AS(assign_workspace_bytes(call.implementation, call.p), InvalidArgument);
  call.p.index = DType::kI64;
  REQUIRE_NOTHROW(assign_workspace_bytes(call.implementation, call.p));
}

/// Too large for a thread's stack.
struct LargeAssignCall : AssignCall {
  LargeAssignCall() {
    p.layers = p.groups = 1;
    p.queries = 150;
    p.cost = {costs, DType::kF32, 0, 0, 0};
    outputs = {};
  }
};

TEST_CASE("an assignment's workspace is checked, and known before there are arrays") {
  LargeAssignCall call;
  call.p.cost.data = call.p.offsets.data = nullptr;
  require_workspace_of<LargeAssignCall>(assign_workspace_bytes(call.implementation, call.p));
}

TEST_CASE("what is empty needs neither arrays nor a workspace") {
  for (const char* const name : {"cpu/native", "cpu/reference"}) {
    for (std::int64_t AssignProblem::* const size :
         {&AssignProblem::layers, &AssignProblem::images, &AssignProblem::queries,
          &AssignProblem::columns}) {
      INFO(name);
      AssignCall call;
      call.implementation = implementation(name);
      call.p.*size = 0;
      call.p.cost.data = call.p.offsets.data = nullptr;
      REQUIRE(assign_workspace_bytes(call.implementation, call.p) == 0);
      call.workspace.execution = {};
      REQUIRE_NOTHROW(call.run());
    }
  }
}

}  // namespace
}  // namespace boxloss
