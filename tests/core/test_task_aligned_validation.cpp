// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

namespace boxloss {
namespace {

/// Two images of three anchors, two classes and four boxes: right, until a test spoils it.
struct MatchCall {
  alignas(8) float scores[2 * 3 * 2] = {}, pred[2 * 3 * 4] = {}, points[3 * 2] = {};
  alignas(8) float target[4 * 4] = {};
  alignas(8) std::int32_t offsets[4] = {0, 2, 4}, labels[6] = {0, 1, 1, 0};
  Output<std::int64_t, 2 * 3 + 1> target_index;
  Output<float, 2 * 3 + 2> score, overlap;

  TaskAlignedProblem p;
  TaskAlignedOutputs outputs = {target_index.values, score.values, overlap.values};
  Workspace workspace;
  Implementation implementation = boxloss::implementation("cpu/native");

  MatchCall() {
    p.images = 2;
    p.anchors = 3;
    p.classes = 2;
    p.scores = {scores, DType::kF32, 6, 2, 1};
    p.pred = {pred, DType::kF32, BoxFormat::kXyxy, 2, 3, 12, 4};
    p.points = {points, DType::kF32};
    p.target = {target, DType::kF32, BoxFormat::kXyxy, 1, 4, 0, 4};
    p.offsets = {offsets, DType::kI32};
    p.labels = {labels, DType::kI32};
  }

  void pad() {
    p.target.images = 2;
    p.target.slots = 2;
    p.target.image_stride = 8;
    p.offsets = {};
  }
  void run() { task_aligned_match(implementation, p, outputs, workspace.execution); }
  bool is_untouched() const {
    return target_index.is_untouched() && score.is_untouched() && overlap.is_untouched();
  }
};

using Rows = Refusals<MatchCall>;

// clang-format off
TEST_CASE("a task-aligned match that is wrong is refused") {
  const std::string unset = " is not set; it must be the number of ", most = "; there can be 2^31 - 1 of each";
  const std::string finite = "; it must be finite and not negative, as a float32";
  const std::string no_rows = "pred.rows and target.rows must not be given for a task-aligned match";
  require_refused<InvalidArgument>(Rows{
      {[](MatchCall& c) { c.p.device = Device::kCuda; }, "the problem is on cuda, but cpu/native was asked to run it"},
      // --- sizes
      {[](MatchCall& c) { c.p.images = TaskAlignedProblem().images; }, "images" + unset + "images"},
      {[](MatchCall& c) { c.p.anchors = TaskAlignedProblem().anchors; }, "anchors" + unset + "anchors of each image"},
      {[](MatchCall& c) { c.p.classes = TaskAlignedProblem().classes; }, "classes" + unset + "scores of each anchor"},
      {[](MatchCall& c) { c.p.classes = -1; }, "classes is -1; it must not be negative"},
      {[](MatchCall& c) { c.p.pred.images = -2; }, "pred has a negative shape: -2 images, 3 slots"},
      {[](MatchCall& c) { c.p.pred.slots = 2; }, "pred has 2 images of 2 boxes; it must have one for each of 2 images' 3 anchors"},
      {[](MatchCall& c) { c.p.pred.images = 3; }, "pred has 3 images of 3 boxes; it must have one for each of 2 images' 3 anchors"},
      {[](MatchCall& c) { c.p.target.slots = BoxView().slots; }, "target.slots" + unset + "boxes of each image"},
      {[](MatchCall& c) { c.p.target.images = 2; }, "target has 2 images; it must have 1, a list of all boxes, with offsets"},
      {[](MatchCall& c) { c.p.offsets = {}; }, "target has 1 images; it must have 2, one for each image, without offsets"},
      {[](MatchCall& c) { c.p.anchors = c.p.pred.slots = kMost32 + 1; }, "there are 2147483648 anchors, and target has 4 slots" + most},
      {[](MatchCall& c) { c.p.target.slots = kMost32 + 1; }, "there are 3 anchors, and target has 2147483648 slots" + most},
      {[](MatchCall& c) {
         c.pad();
         c.p.index = DType::kI32;
         c.p.images = c.p.pred.images = c.p.target.images = kMost32;
       }, "target has 2147483647 images of 2 slots, which is more than int32 can count"},
      {[](MatchCall& c) {
         c.pad();
         c.p.images = c.p.pred.images = c.p.target.images = std::int64_t{1} << 54;
         c.p.target.slots = 4;
       }, "target has 72057594037927936 boxes, which choose 3 anchors each; that is more than 64 bits can count"},
      // --- options
      {[](MatchCall& c) { c.p.pred.format = kNoFormat; }, "pred.format is 3; it must be one of xyxy, xywh, cxcywh"},
      {[](MatchCall& c) { c.p.target.format = BoxFormat::kXywh; }, "target is xywh; it must be xyxy"},
      {[](MatchCall& c) { c.p.topk = 0; }, "topk is 0; it must be at least 1"},
      {[](MatchCall& c) { c.p.topk2 = 0; }, "topk2 is 0; it must be at least 1"},
      {[](MatchCall& c) { c.p.alpha = -1; }, "alpha is -1" + finite},
      {[](MatchCall& c) { c.p.beta = kNan; }, "beta is nan" + finite},
      {[](MatchCall& c) { c.p.min_side = 1e300; }, "min_side is 1e+300" + finite},
      {[](MatchCall& c) { c.p.small_side = -1; }, "small_side is -1" + finite},
      {[](MatchCall& c) { c.p.min_side = 4; c.p.small_side = 5; }, "small_side is 5; it must be at most min_side, 4"},
      // --- arrays
      {[](MatchCall& c) { c.p.pred.rows = {c.labels, DType::kI32}; }, no_rows},
      {[](MatchCall& c) { c.p.target.rows = {c.labels, DType::kI32}; }, no_rows},
      {[](MatchCall& c) { c.p.scores.image_stride = -1; }, "scores has a negative stride: -1 by image, 2 by anchor, 1 by class"},
      {[](MatchCall& c) { c.p.scores.anchor_stride = -1; }, "scores has a negative stride: 6 by image, -1 by anchor, 1 by class"},
      {[](MatchCall& c) { c.p.scores.class_stride = -1; }, "scores has a negative stride: 6 by image, 2 by anchor, -1 by class"},
      {[](MatchCall& c) { c.p.points.image_stride = -1; }, "points has a negative stride: -1 by image, 2 by anchor, 1 by coordinate"},
      {[](MatchCall& c) { c.p.points.anchor_stride = -2; }, "points has a negative stride: 0 by image, -2 by anchor, 1 by coordinate"},
      {[](MatchCall& c) { c.p.points.coordinate_stride = -1; }, "points has a negative stride: 0 by image, 2 by anchor, -1 by coordinate"},
      {[](MatchCall& c) { c.p.scores.data = nullptr; }, "scores.data is null"},
      {[](MatchCall& c) { c.p.pred.data = nullptr; }, "pred.data is null"},
      {[](MatchCall& c) { c.p.points.data = nullptr; }, "points.data is null"},
      {[](MatchCall& c) { c.p.target.data = nullptr; }, "target.data is null"},
      {[](MatchCall& c) { c.p.labels = {}; }, "labels.dtype is not set; it must be that of an integer for each row of target"},
      {[](MatchCall& c) { c.p.labels.data = nullptr; }, "labels.data is null; where labels.dtype is set it must not be"},
      {[](MatchCall& c) { c.p.offsets.data = nullptr; }, "offsets.data is null; where offsets.dtype is set it must not be"},
      {[](MatchCall& c) { c.pad(); c.p.offsets.data = c.offsets; }, "offsets.dtype is not set; it must be, where offsets.data is"},
      {[](MatchCall& c) { c.outputs.target_index = nullptr; }, "outputs.target_index is null"},
      {[](MatchCall& c) { c.outputs.score = nullptr; }, "outputs.score is null"},
      {[](MatchCall& c) { c.outputs.overlap = nullptr; }, "outputs.overlap is null"},
      {[](MatchCall& c) { shift(c.p.scores.data); }, "scores" + kOffFour + "float32"},
      {[](MatchCall& c) { shift(c.p.points.data); }, "points" + kOffFour + "float32"},
      {[](MatchCall& c) { shift(c.outputs.target_index); }, "outputs.target_index" + kOffEight + "int64"},
      {[](MatchCall& c) { shift(c.outputs.score); }, "outputs.score" + kOffFour + "float32"},
      {[](MatchCall& c) { shift(c.outputs.overlap); }, "outputs.overlap" + kOffFour + "float32"},
  });
  require_refused<Unsupported>(Rows{
      {[](MatchCall& c) { c.p.scores.dtype = DType::kI32; }, "scores is int32" + kNotFloating},
      {[](MatchCall& c) { c.p.pred.dtype = DType::kU8; }, "pred is uint8" + kNotFloating},
      {[](MatchCall& c) { c.p.points.dtype = DType::kI64; }, "points is int64" + kNotFloating},
      {[](MatchCall& c) { c.p.offsets.dtype = DType::kF32; }, "offsets is float32" + kNotIndices},
      {[](MatchCall& c) { c.p.labels.dtype = DType::kU8; }, "labels is uint8" + kNotIndices},
      {[](MatchCall& c) { c.p.index = DType::kI16; }, "index is int16" + kNotIndices},
      {[](MatchCall& c) { c.implementation.task_aligned_match = {}; }, "cpu/native does not serve task_aligned_match"},
  });
}
// clang-format on

TEST_CASE("a task-aligned match without fault is not refused") {
  require_ok<MatchCall>([](MatchCall&) {});
  require_ok<MatchCall>([](MatchCall& c) { c.pad(); });
  require_ok<MatchCall>([](MatchCall& c) { c.p.small_side = 5; });  // where none is enlarged
  for (const std::int64_t boxes : {4, 0}) {
    require_ok<MatchCall>([=](MatchCall& c) {
      c.p.index = DType::kI32;
      c.p.target.slots = boxes;
    });
  }
}

TEST_CASE("where no anchor can have a box nothing is read") {
  const auto require_nothing = [](const char* name, const auto& empty, bool is_written = true) {
    INFO(name);
    MatchCall call;
    call.implementation = implementation(name);
    empty(call.p);
    call.p.scores.data = call.p.points.data = call.p.labels.data = nullptr;
    REQUIRE(task_aligned_match_workspace_bytes(call.implementation, call.p) == 0);
    call.workspace.execution = {};
    if (!is_written) call.outputs = {};
    REQUIRE_NOTHROW(call.run());
  };
  using Problem = TaskAlignedProblem;
  for (const char* const name : {"cpu/native", "cpu/reference"}) {
    require_nothing(name, [](Problem& p) { p.target.slots = 0; });
    require_nothing(name, [](Problem& p) { p.classes = 0; });
    require_nothing(name, [](Problem& p) { p.anchors = p.pred.slots = 0; }, false);
    require_nothing(name, [](Problem& p) { p.images = p.pred.images = 0; }, false);
  }
}

/// By the pointer of its offsets.
std::size_t one_if_padded(const TaskAlignedProblem& p) { return p.offsets.data == nullptr; }

TEST_CASE("a task-aligned match's workspace is checked, and known before there are arrays") {
  MatchCall call;
  TaskAlignedProblem& p = call.p;
  p.scores.data = p.pred.data = p.points.data = nullptr;
  p.target.data = p.offsets.data = p.labels.data = nullptr;
  require_workspace_of<MatchCall>(task_aligned_match_workspace_bytes(call.implementation, p));
  call.implementation.task_aligned_match.workspace_bytes = one_if_padded;
  REQUIRE(task_aligned_match_workspace_bytes(call.implementation, p) == 0);
  call.pad();
  REQUIRE(task_aligned_match_workspace_bytes(call.implementation, p) == 1);
}

}  // namespace
}  // namespace boxloss
