// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

namespace boxloss {
namespace {

/// Two images of three anchors each, and five boxes: right, until a test spoils it.
struct MatchCall {
  alignas(8) float anchors[2 * 3 * 4] = {};
  alignas(8) float target[5 * 4] = {};
  alignas(8) std::int32_t offsets[4] = {0, 2, 5};
  Output<std::int64_t, 2 * 3 + 1> target_index;
  Output<float, 2 * 3 + 1> iou;

  MaxIouProblem p;
  MaxIouOutputs outputs = {target_index.values, iou.values};
  Workspace workspace;
  Implementation implementation = boxloss::implementation("cpu/native");

  MatchCall() {
    p.anchors = {anchors, DType::kF32, BoxFormat::kXyxy, 2, 3, 12, 4, 1};
    p.target = {target, DType::kF32, BoxFormat::kXyxy, 1, 5, 20, 4, 1};
    p.offsets = {offsets, DType::kI32};
    p.high = 0.7;
    p.low = 0.3;
    p.low_quality = LowQuality::kArgmax;
  }

  void run() { max_iou_match(implementation, p, outputs, workspace.execution); }
  bool is_untouched() const { return target_index.is_untouched() && iou.is_untouched(); }
};

using Rows = Refusals<MatchCall>;

// clang-format off
TEST_CASE("a matching that is wrong is refused") {
  const std::string order = "; low must not be more than high, and neither NaN", most = "; there can be 2^31 - 1 of each";
  const std::string no_rows = "anchors.rows and target.rows must not be given for a matching";
  require_refused<InvalidArgument>(Rows{
      {[](MatchCall& c) { c.p.device = Device::kCuda; }, "the problem is on cuda, but cpu/native was asked to run it"},
      {[](MatchCall& c) { c.p.low_quality = static_cast<LowQuality>(4); }, "low_quality is 4; it must be one of none, argmax, overwrite, force"},
      {[](MatchCall& c) { c.p.low = 0.8; }, "low is 0.8 and high 0.7" + order},
      {[](MatchCall& c) { c.p.high = kNan; }, "low is 0.3 and high nan" + order},
      {[](MatchCall& c) { c.p.min_pos_iou = kNan; }, "min_pos_iou is NaN; it must be a number"},
      {[](MatchCall& c) { c.p.anchors.format = BoxFormat::kCxcywh; }, "anchors are cxcywh and target xyxy; both must be xyxy"},
      {[](MatchCall& c) { c.p.target.format = BoxFormat::kXywh; }, "anchors are xyxy and target xywh; both must be xyxy"},
      {[](MatchCall& c) { c.p.anchors.images = -1; }, "anchors has a negative shape: -1 images, 3 slots"},
      {[](MatchCall& c) { c.p.target.slots = -1; }, "target has a negative shape: 1 images, -1 slots"},
      {[](MatchCall& c) { c.p.target.images = 2; }, "target must be one image of T slots, but has 2 images"},
      {[](MatchCall& c) { c.p.anchors.slots = kMost32 + 1; }, "there are 2147483648 anchors and 5 boxes" + most},
      {[](MatchCall& c) { c.p.target.slots = kMost32 + 1; }, "there are 3 anchors and 2147483648 boxes" + most},
      {[](MatchCall& c) { c.p.anchors.rows = {c.offsets, DType::kI32}; }, no_rows},
      {[](MatchCall& c) { c.p.target.rows = {c.offsets, DType::kI32}; }, no_rows},
      {[](MatchCall& c) { c.p.target.rows.data = c.offsets; }, "target.rows.dtype is not set; it must be, where target.rows.data is"},
      {[](MatchCall& c) { c.p.anchors.data = nullptr; }, "anchors.data is null"},
      {[](MatchCall& c) { c.p.target.data = nullptr; }, "target.data is null"},
      {[](MatchCall& c) { c.p.offsets = {}; }, "offsets.dtype is not set; it must be that of (images + 1) integers"},
      {[](MatchCall& c) { c.p.offsets.data = nullptr; }, "offsets.data is null; where offsets.dtype is set it must not be"},
      {[](MatchCall& c) { shift(c.outputs.target_index); }, "outputs.target_index" + kOffEight + "int64"},
      {[](MatchCall& c) { shift(c.outputs.iou); }, "outputs.iou" + kOffFour + "float32"},
  });
  require_refused<Unsupported>(Rows{
      {[](MatchCall& c) { c.p.anchors.dtype = DType::kI32; }, "anchors is int32" + kNotFloating},
      {[](MatchCall& c) { c.p.target.dtype = kNoDType; }, "target.dtype is 77" + kNoElements},
      {[](MatchCall& c) { c.p.offsets.dtype = DType::kF32; }, "offsets is float32" + kNotIndices},
      {[](MatchCall& c) { c.p.index = DType::kU8; }, "index is uint8" + kNotIndices},
      {[](MatchCall& c) { c.implementation.max_iou_match = {}; }, "cpu/native does not serve max_iou_match"},
  });
  REQUIRE_THROWS_AS(check_options(MaxIouProblem()), Error);  // without thresholds
}
// clang-format on

TEST_CASE("a matching without fault is not refused") {
  require_ok<MatchCall>([](MatchCall&) {});
  require_ok<MatchCall>([](MatchCall& c) { c.p.target.dtype = DType::kU8; });
  require_ok<MatchCall>([](MatchCall& c) { c.p.high = c.p.low = 0.5; });
  require_ok<MatchCall>([](MatchCall& c) { c.outputs = {}; });
}

TEST_CASE("a matching's workspace is checked, and known before there are arrays") {
  MatchCall call;
  call.p.anchors.data = call.p.target.data = call.p.offsets.data = nullptr;
  require_workspace_of<MatchCall>(max_iou_match_workspace_bytes(call.implementation, call.p));
}

TEST_CASE("a matching without pairs needs neither arrays nor a workspace") {
  const auto require_nothing = [](const char* name, const auto& empty) {
    INFO(name);
    MatchCall call;
    call.implementation = implementation(name);
    empty(call.p);
    call.p.offsets.data = nullptr;
    REQUIRE(max_iou_match_workspace_bytes(call.implementation, call.p) == 0);
    call.workspace.execution = {};
    REQUIRE_NOTHROW(call.run());
  };
  for (const char* const name : {"cpu/native", "cpu/reference"}) {
    require_nothing(name, [](MaxIouProblem& p) {
      p.anchors.images = 0;
      p.anchors.data = nullptr;
    });
    require_nothing(name, [](MaxIouProblem& p) {
      p.anchors.slots = 0;
      p.anchors.data = nullptr;
    });
    require_nothing(name, [](MaxIouProblem& p) {  // anchors are not read, but must be there
      p.target.slots = 0;
      p.target.data = nullptr;
    });
  }
}

}  // namespace
}  // namespace boxloss
