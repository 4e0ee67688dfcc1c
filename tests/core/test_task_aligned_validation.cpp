// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace boxloss {
namespace {

using Catch::Matchers::Message;

/// Two images of three anchors, two classes and four boxes: right, until a test spoils it.
struct MatchCall {
  alignas(8) float scores[2 * 3 * 2] = {.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f, .1f, .2f, .3f};
  alignas(8) float pred[2 * 3 * 4 + 4], points[3 * 2 + 2] = {1, 1, 2, 2, 3, 3}, target[4 * 4 + 4];
  alignas(8) std::int32_t offsets[4] = {0, 2, 4}, labels[6] = {0, 1, 1, 0};
  alignas(8) std::int64_t target_index[2 * 3 + 1];
  alignas(8) float score[2 * 3 + 2], overlap[2 * 3 + 2];
  std::vector<double> workspace = std::vector<double>(4096);

  TaskAlignedProblem problem;
  TaskAlignedOutputs outputs = {target_index, score, overlap};
  Execution execution;
  const Implementation* implementation = &boxloss::implementation("cpu/native");

  MatchCall() {
    for (std::size_t i = 0; i < std::size(pred); ++i) pred[i] = i % 4 < 2 ? 0.f : 4.f;
    for (std::size_t i = 0; i < std::size(target); ++i) target[i] = i % 4 < 2 ? 0.f : 4.f;
    TaskAlignedProblem& p = problem;
    p.images = 2;
    p.anchors = 3;
    p.classes = 2;
    p.scores = {scores, DType::kF32, 6, 2, 1};
    p.pred = {pred, DType::kF32, BoxFormat::kXyxy, 2, 3, 12, 4};
    p.points = {points, DType::kF32};
    p.target = {target, DType::kF32, BoxFormat::kXyxy, 1, 4, 0, 4};
    p.offsets = {offsets, DType::kI32};
    p.labels = {labels, DType::kI32};
    execution.workspace = workspace.data();
    execution.workspace_bytes = workspace.size() * sizeof(double);
    std::fill(std::begin(target_index), std::end(target_index), 99);
    std::fill(std::begin(score), std::end(score), 99.f);
    std::fill(std::begin(overlap), std::end(overlap), 99.f);
  }
  MatchCall(const MatchCall&) = delete;
  MatchCall& operator=(const MatchCall&) = delete;

  void pad() {
    problem.target.images = 2;
    problem.target.slots = 2;
    problem.target.image_stride = 8;
    problem.offsets = {};
  }
  void run() { task_aligned_match(*implementation, problem, outputs, execution); }
  bool is_untouched() const {
    return std::count(std::begin(target_index), std::end(target_index), 99) == 7 &&
           std::count(std::begin(score), std::end(score), 99.f) == 8 &&
           std::count(std::begin(overlap), std::end(overlap), 99.f) == 8;
  }
};

using Spoil = std::function<void(MatchCall&)>;

template <class Error>
void require_refused(const Spoil& spoil, const std::string& text) {
  MatchCall call;
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

constexpr std::int64_t kMost32 = 2147483647;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("a task-aligned match without fault is not refused") {
  MatchCall call, padded;
  call.run();
  REQUIRE(call.target_index[6] == 99);
  REQUIRE(std::count(call.target_index, call.target_index + 6, 99) == 0);
  padded.pad();
  padded.run();
  REQUIRE(std::equal(call.target_index, call.target_index + 6, padded.target_index));
}

TEST_CASE("a task-aligned match on another device, or that is not served, is refused") {
  require_invalid([](MatchCall& c) { c.problem.device = Device::kCuda; },
                  "the problem is on cuda, but cpu/native was asked to run it");
  Implementation other = implementation("cpu/native");
  other.task_aligned_match = {};
  require_unsupported([&](MatchCall& c) { c.implementation = &other; },
                      "cpu/native does not serve task_aligned_match");
}

TEST_CASE("a task-aligned match's dtypes are checked") {
  const std::string floating = "; it must be float64, float32, float16 or bfloat16";
  const std::string indices = "; it must be int32 or int64";
  require_unsupported([](MatchCall& c) { c.problem.scores.dtype = DType::kI32; },
                      "scores is int32" + floating);
  require_unsupported([](MatchCall& c) { c.problem.pred.dtype = DType::kU8; },
                      "pred is uint8" + floating);
  require_unsupported([](MatchCall& c) { c.problem.points.dtype = DType::kI64; },
                      "points is int64" + floating);
  require_unsupported([](MatchCall& c) { c.problem.offsets.dtype = DType::kF32; },
                      "offsets is float32" + indices);
  require_unsupported([](MatchCall& c) { c.problem.labels.dtype = DType::kU8; },
                      "labels is uint8" + indices);
  require_unsupported([](MatchCall& c) { c.problem.index = DType::kI16; },
                      "index is int16" + indices);
}

TEST_CASE("what was forgotten of a task-aligned match, or is no enumerator, is named") {
  const std::string unset = " is not set; it must be the number of ";
  require_invalid([](MatchCall& c) { c.problem.images = TaskAlignedProblem().images; },
                  "images" + unset + "images");
  require_invalid([](MatchCall& c) { c.problem.anchors = TaskAlignedProblem().anchors; },
                  "anchors" + unset + "anchors of each image");
  require_invalid([](MatchCall& c) { c.problem.classes = TaskAlignedProblem().classes; },
                  "classes" + unset + "scores of each anchor");
  require_invalid([](MatchCall& c) { c.problem.target.slots = BoxView().slots; },
                  "target.slots" + unset + "boxes of each image");
  require_invalid([](MatchCall& c) { c.problem.labels = {}; },
                  "labels.dtype is not set; it must be that of an integer for each row of target");
  require_invalid([](MatchCall& c) { c.problem.pred.format = static_cast<BoxFormat>(3); },
                  "pred.format is 3; it must be one of xyxy, xywh, cxcywh");
  require_invalid([](MatchCall& c) { c.problem.target.format = static_cast<BoxFormat>(3); },
                  "target is 3; it must be xyxy");
  require_invalid([](MatchCall& c) { c.execution.parallel_for = {}; },
                  "parallel_for is empty; it must run tasks, as boxloss::parallel_for does");
  require_invalid([](MatchCall& c) { c.execution.workspace = c.workspace.data() + 1; },
                  "workspace does not lie on a multiple of 16 bytes");
}

TEST_CASE("a task-aligned match's numbers are checked") {
  require_invalid([](MatchCall& c) { c.problem.topk = 0; }, "topk is 0; it must be at least 1");
  require_invalid([](MatchCall& c) { c.problem.topk2 = 0; }, "topk2 is 0; it must be at least 1");
  require_invalid([](MatchCall& c) { c.problem.alpha = -1; },
                  "alpha is -1; it must be finite and not negative, as a float32");
  require_invalid([](MatchCall& c) { c.problem.beta = kNan; },
                  "beta is nan; it must be finite and not negative, as a float32");
  require_invalid(
      [](MatchCall& c) {
        c.problem.min_side = 4;
        c.problem.small_side = 5;
      },
      "small_side is 5; it must be at most min_side, 4");
  require_invalid([](MatchCall& c) { c.problem.min_side = 1e300; },
                  "min_side is 1e+300; it must be finite and not negative, as a float32");
}

TEST_CASE("a task-aligned match's shapes fit together") {
  require_invalid([](MatchCall& c) { c.problem.classes = -1; },
                  "classes is -1; it must not be negative");
  require_invalid([](MatchCall& c) { c.problem.pred.slots = 2; },
                  "pred has 2 images of 2 boxes; it must have one for each of 2 images' 3 anchors");
  require_invalid([](MatchCall& c) { c.problem.target.images = 2; },
                  "target has 2 images; it must have 1, a list of all boxes, with offsets");
  require_invalid([](MatchCall& c) { c.problem.offsets = {}; },
                  "target has 1 images; it must have 2, one for each image, without offsets");
  require_invalid([](MatchCall& c) { c.problem.target.format = BoxFormat::kXywh; },
                  "target is xywh; it must be xyxy");
  require_invalid([](MatchCall& c) { c.problem.pred.rows = {c.labels, DType::kI32}; },
                  "pred.rows and target.rows must not be given for a task-aligned match");
  require_invalid(
      [](MatchCall& c) {
        c.problem.anchors = c.problem.pred.slots = kMost32 + 1;
        c.problem.pred.slot_stride = 0;
      },
      "there are 2147483648 anchors, and target has 4 slots; there can be 2^31 - 1 of each");
  require_invalid(
      [](MatchCall& c) {
        c.pad();
        c.problem.index = DType::kI32;
        c.problem.images = c.problem.pred.images = c.problem.target.images = kMost32;
      },
      "target has 2147483647 images of 2 slots, which is more than int32 can count");
}

TEST_CASE("a task-aligned match's arrays are checked") {
  require_invalid([](MatchCall& c) { c.problem.scores.class_stride = -1; },
                  "scores has a negative stride: 6 by image, 2 by anchor, -1 by class");
  require_invalid([](MatchCall& c) { c.problem.points.anchor_stride = -2; },
                  "points has a negative stride: 0 by image, -2 by anchor, 1 by coordinate");
  require_invalid([](MatchCall& c) { c.problem.scores.data = nullptr; }, "scores.data is null");
  require_invalid([](MatchCall& c) { c.problem.pred.data = nullptr; }, "pred.data is null");
  require_invalid([](MatchCall& c) { c.problem.points.data = nullptr; }, "points.data is null");
  require_invalid([](MatchCall& c) { c.problem.target.data = nullptr; }, "target.data is null");
  require_invalid([](MatchCall& c) { c.problem.labels.data = nullptr; },
                  "labels.data is null; where labels.dtype is set it must not be");
  require_invalid([](MatchCall& c) { c.problem.offsets.data = nullptr; },
                  "offsets.data is null; where offsets.dtype is set it must not be");
  require_invalid(
      [](MatchCall& c) {
        c.pad();
        c.problem.offsets.data = c.offsets;
      },
      "offsets.dtype is not set; it must be, where offsets.data is");
  require_invalid([](MatchCall& c) { c.outputs.target_index = nullptr; },
                  "outputs.target_index is null");
  require_invalid([](MatchCall& c) { c.outputs.score = nullptr; }, "outputs.score is null");
  require_invalid([](MatchCall& c) { c.outputs.overlap = nullptr; }, "outputs.overlap is null");
}

/// One byte behind where it should be.
template <class T>
T* off(T* pointer) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

TEST_CASE("a task-aligned match's array that does not lie on its elements is refused") {
  const std::string four = " does not lie on a multiple of the 4 bytes of a ";
  require_invalid([](MatchCall& c) { c.problem.scores.data = off(c.scores); },
                  "scores" + four + "float32");
  require_invalid([](MatchCall& c) { c.problem.pred.data = off(c.pred); },
                  "pred" + four + "float32");
  require_invalid([](MatchCall& c) { c.problem.points.data = off(c.points); },
                  "points" + four + "float32");
  require_invalid([](MatchCall& c) { c.problem.target.data = off(c.target); },
                  "target" + four + "float32");
  require_invalid([](MatchCall& c) { c.problem.offsets.data = off(c.offsets); },
                  "offsets" + four + "int32");
  require_invalid([](MatchCall& c) { c.problem.labels.data = off(c.labels); },
                  "labels" + four + "int32");
  require_invalid([](MatchCall& c) { c.outputs.target_index = off(c.target_index); },
                  "outputs.target_index does not lie on a multiple of the 8 bytes of a int64");
  require_invalid([](MatchCall& c) { c.outputs.score = off(c.score); },
                  "outputs.score" + four + "float32");
  require_invalid([](MatchCall& c) { c.outputs.overlap = off(c.overlap); },
                  "outputs.overlap" + four + "float32");
}

TEST_CASE("a task-aligned match's workspace is checked") {
  MatchCall call;
  const std::size_t bytes = task_aligned_match_workspace_bytes(*call.implementation, call.problem);
  REQUIRE(bytes > 0);
  require_invalid([&](MatchCall& c) { c.execution.workspace_bytes = bytes - 1; },
                  "workspace has " + std::to_string(bytes - 1) + " bytes; this problem needs " +
                      std::to_string(bytes));
}

TEST_CASE("where no anchor can have a box nothing is read") {
  const auto require_nothing = [](const char* name, const Spoil& empty, std::int64_t written) {
    MatchCall call;
    call.implementation = &implementation(name);
    empty(call);
    TaskAlignedProblem& p = call.problem;
    p.scores.data = p.points.data = p.labels.data = nullptr;
    REQUIRE(task_aligned_match_workspace_bytes(*call.implementation, p) == 0);
    call.execution.workspace = nullptr;
    call.execution.workspace_bytes = 0;
    REQUIRE_NOTHROW(call.run());
    for (std::int64_t i = 0; i < 7; ++i) {
      REQUIRE(call.target_index[i] == (i < written ? -1 : 99));
      REQUIRE(call.score[i] == (i < written ? 0.f : 99.f));
      REQUIRE(call.overlap[i] == (i < written ? 0.f : 99.f));
    }
  };
  for (const char* name : {"cpu/native", "cpu/reference"}) {
    require_nothing(name, [](MatchCall& c) { c.problem.target.slots = 0; }, 6);
    require_nothing(name, [](MatchCall& c) { c.problem.classes = 0; }, 6);
    require_nothing(name, [](MatchCall& c) { c.problem.anchors = c.problem.pred.slots = 0; }, 0);
    require_nothing(name, [](MatchCall& c) { c.problem.images = c.problem.pred.images = 0; }, 0);
  }
}

/// By the pointer of its offsets.
std::size_t one_if_padded(const TaskAlignedProblem& p) { return p.offsets.data == nullptr; }

TEST_CASE("a task-aligned match's workspace is asked for before there are pointers") {
  MatchCall call;
  Implementation looking = *call.implementation;
  looking.task_aligned_match.workspace_bytes = one_if_padded;
  TaskAlignedProblem& p = call.problem;
  const std::size_t bytes = task_aligned_match_workspace_bytes(*call.implementation, p);
  p.scores.data = p.pred.data = p.points.data = nullptr;
  p.target.data = p.offsets.data = p.labels.data = nullptr;
  REQUIRE(task_aligned_match_workspace_bytes(*call.implementation, p) == bytes);
  REQUIRE(task_aligned_match_workspace_bytes(looking, p) == 0);
  call.pad();
  REQUIRE(task_aligned_match_workspace_bytes(looking, p) == 1);
}

}  // namespace
}  // namespace boxloss
