// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/backend.hpp>
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

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Two images of three anchors each, and five boxes: right, until a test spoils it.
struct MatchCall {
  alignas(8) float anchors[2 * 3 * 4] = {};
  alignas(8) float target[5 * 4] = {};
  alignas(8) std::int32_t offsets[4] = {0, 2, 5};
  alignas(8) std::int64_t target_index[2 * 3 + 1];
  alignas(8) float iou[2 * 3 + 1];
  std::vector<double> workspace = std::vector<double>(512);

  MaxIouProblem problem;
  MaxIouOutputs outputs = {target_index, iou};
  Execution execution;
  const Implementation* implementation = &boxloss::implementation("cpu/native");

  MatchCall() {
    problem.anchors = {anchors, DType::kF32, BoxFormat::kXyxy, 2, 3, 12, 4, 1};
    problem.target = {target, DType::kF32, BoxFormat::kXyxy, 1, 5, 20, 4, 1};
    problem.offsets = {offsets, DType::kI32};
    problem.high = 0.7;
    problem.low = 0.3;
    problem.low_quality = LowQuality::kArgmax;
    execution.workspace = workspace.data();
    execution.workspace_bytes = workspace.size() * sizeof(double);
    for (std::int64_t& index : target_index) index = 99;
    for (float& value : iou) value = 99;
  }
  MatchCall(const MatchCall&) = delete;
  MatchCall& operator=(const MatchCall&) = delete;

  void run() { max_iou_match(*implementation, problem, outputs, execution); }

  bool is_untouched() const {
    for (const std::int64_t index : target_index) {
      if (index != 99) return false;
    }
    for (const float value : iou) {
      if (value != 99) return false;
    }
    return true;
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

void require_ok(const Spoil& change) {
  MatchCall call;
  change(call);
  REQUIRE_NOTHROW(call.run());
}

TEST_CASE("a matching without fault is not refused") {
  MatchCall call;
  call.run();
  REQUIRE_FALSE(call.is_untouched());
  REQUIRE(call.target_index[6] == 99);
  REQUIRE(call.iou[6] == 99);
}

TEST_CASE("a matching on another device is refused") {
  require_invalid([](MatchCall& c) { c.problem.device = Device::kCuda; },
                  "the problem is on cuda, but cpu/native was asked to run it");
}

TEST_CASE("an implementation without max-IoU matching refuses it") {
  Implementation lossy = implementation("cpu/native");
  lossy.max_iou_match = {};
  require_unsupported([&](MatchCall& c) { c.implementation = &lossy; },
                      "cpu/native does not serve max_iou_match");
}

TEST_CASE("an implementation that has half of max-IoU matching is refused") {
  Implementation half = implementation("cpu/native");
  half.name = "half/match";
  half.max_iou_match.workspace_bytes = nullptr;
  REQUIRE_THROWS_MATCHES(
      register_implementation(half), InvalidArgument,
      Message("half/match has max_iou_match.run, but no max_iou_match.workspace_bytes"));
}

TEST_CASE("a matching's dtypes are checked") {
  require_unsupported([](MatchCall& c) { c.problem.anchors.dtype = DType::kI32; },
                      "anchors is int32; it must be float64, float32, float16 or bfloat16");
  require_unsupported([](MatchCall& c) { c.problem.offsets.dtype = DType::kF32; },
                      "offsets is float32; it must be int32 or int64");
  require_unsupported([](MatchCall& c) { c.problem.index = DType::kU8; },
                      "index is uint8; it must be int32 or int64");
  require_unsupported([](MatchCall& c) { c.problem.target.dtype = static_cast<DType>(99); },
                      "target.dtype is 99; it must be one of float64, float32, float16, bfloat16, "
                      "uint8, int16, int32, int64");
  require_ok([](MatchCall& c) { c.problem.target.dtype = DType::kU8; });
}

TEST_CASE("what was forgotten of a matching, or is no enumerator, is named") {
  require_invalid([](MatchCall& c) { c.problem.low_quality = static_cast<LowQuality>(4); },
                  "low_quality is 4; it must be one of none, argmax, overwrite, force");
  require_invalid([](MatchCall& c) { c.problem.anchors.format = static_cast<BoxFormat>(7); },
                  "anchors are 7 and target xyxy; both must be xyxy");
  require_invalid([](MatchCall& c) { c.problem.anchors.slots = BoxView().slots; },
                  "anchors.slots is not set; it must be the number of boxes of each image");
  require_invalid([](MatchCall& c) { c.problem.offsets = {}; },
                  "offsets.dtype is not set; it must be that of (images + 1) integers");
  require_invalid([](MatchCall& c) { c.execution.parallel_for = {}; },
                  "parallel_for is empty; it must run tasks, as boxloss::parallel_for does");
  require_invalid([](MatchCall& c) { c.execution.workspace = c.workspace.data() + 1; },
                  "workspace does not lie on a multiple of 16 bytes");
}

TEST_CASE("a matching's thresholds are in order, and numbers") {
  const std::string rest = "; low must not be more than high, and neither NaN";
  require_invalid([](MatchCall& c) { c.problem.low = 0.8; }, "low is 0.8 and high 0.7" + rest);
  require_invalid([](MatchCall& c) { c.problem.high = kNan; }, "low is 0.3 and high nan" + rest);
  require_invalid([](MatchCall& c) { c.problem.low = kNan; }, "low is nan and high 0.7" + rest);
  REQUIRE_THROWS_AS(check_options(MaxIouProblem()), Error);
  require_invalid([](MatchCall& c) { c.problem.min_pos_iou = kNan; },
                  "min_pos_iou is NaN; it must be a number");
  require_ok([](MatchCall& c) { c.problem.high = c.problem.low = 0.5; });
}

TEST_CASE("a matching's shapes are checked") {
  require_invalid([](MatchCall& c) { c.problem.anchors.images = -1; },
                  "anchors has a negative shape: -1 images, 3 slots");
  require_invalid([](MatchCall& c) { c.problem.target.images = 2; },
                  "target must be one image of T slots, but has 2 images");
  require_invalid([](MatchCall& c) { c.problem.anchors.slot_stride = -4; },
                  "anchors has a negative stride: 12 by image, -4 by slot, 1 by coordinate");
  require_invalid([](MatchCall& c) { c.problem.target.format = BoxFormat::kXywh; },
                  "anchors are xyxy and target xywh; both must be xyxy");
  require_invalid([](MatchCall& c) { c.problem.anchors.format = BoxFormat::kCxcywh; },
                  "anchors are cxcywh and target xyxy; both must be xyxy");
  require_invalid([](MatchCall& c) { c.problem.target.rows = {c.offsets, DType::kI32}; },
                  "anchors.rows and target.rows must not be given for a matching");
  require_invalid([](MatchCall& c) { c.problem.anchors.rows = {c.offsets, DType::kI32}; },
                  "anchors.rows and target.rows must not be given for a matching");
  const std::string most = "; there can be 2^31 - 1 of each";
  require_invalid([](MatchCall& c) { c.problem.anchors.slots = 2147483648; },
                  "there are 2147483648 anchors and 5 boxes" + most);
  require_invalid([](MatchCall& c) { c.problem.target.slots = 2147483648; },
                  "there are 3 anchors and 2147483648 boxes" + most);
}

TEST_CASE("a matching's arrays are checked") {
  require_invalid([](MatchCall& c) { c.problem.anchors.data = nullptr; }, "anchors.data is null");
  require_invalid([](MatchCall& c) { c.problem.target.data = nullptr; }, "target.data is null");
  require_invalid([](MatchCall& c) { c.problem.offsets.data = nullptr; },
                  "offsets.data is null; where offsets.dtype is set it must not be");
  require_invalid([](MatchCall& c) { c.problem.target.rows.data = c.offsets; },
                  "target.rows.dtype is not set; it must be, where target.rows.data is");
  require_ok([](MatchCall& c) { c.outputs = {c.target_index, nullptr}; });
  require_ok([](MatchCall& c) { c.outputs = {nullptr, c.iou}; });
  require_ok([](MatchCall& c) { c.outputs = {}; });
}

/// One byte behind where it should be.
template <class T>
void* off(T* pointer) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

TEST_CASE("a matching's array that does not lie on its elements is refused") {
  const std::string off_four = " does not lie on a multiple of the 4 bytes of a ";
  const std::string off_eight = " does not lie on a multiple of the 8 bytes of a ";
  require_invalid([](MatchCall& c) { c.problem.anchors.data = off(c.anchors); },
                  "anchors" + off_four + "float32");
  require_invalid([](MatchCall& c) { c.problem.target.data = off(c.target); },
                  "target" + off_four + "float32");
  require_invalid([](MatchCall& c) { c.problem.offsets.data = off(c.offsets); },
                  "offsets" + off_four + "int32");
  require_invalid([](MatchCall& c) { c.outputs.target_index = off(c.target_index); },
                  "outputs.target_index" + off_eight + "int64");
  require_invalid([](MatchCall& c) { c.outputs.iou = off(c.iou); },
                  "outputs.iou" + off_four + "float32");
}

TEST_CASE("a matching's workspace is checked") {
  MatchCall call;
  const std::size_t bytes = max_iou_match_workspace_bytes(*call.implementation, call.problem);
  REQUIRE(bytes > 0);
  MaxIouProblem& p = call.problem;
  p.anchors.data = p.target.data = p.offsets.data = nullptr;  // which it does not look at
  REQUIRE(max_iou_match_workspace_bytes(*call.implementation, p) == bytes);
  const std::string needed = std::to_string(bytes);
  require_invalid(
      [&](MatchCall& c) { c.execution.workspace_bytes = bytes - 1; },
      "workspace has " + std::to_string(bytes - 1) + " bytes; this problem needs " + needed);
  require_invalid([](MatchCall& c) { c.execution.workspace = nullptr; },
                  "workspace is null; this problem needs " + needed + " bytes");
  require_ok([&](MatchCall& c) { c.execution.workspace_bytes = bytes; });
}

TEST_CASE("a matching without pairs needs neither arrays nor a workspace") {
  const auto require_nothing = [](const char* name, const Spoil& empty) {
    INFO(name);
    MatchCall call;
    call.implementation = &implementation(name);
    empty(call);
    call.problem.anchors.data = call.problem.offsets.data = nullptr;
    REQUIRE(max_iou_match_workspace_bytes(*call.implementation, call.problem) == 0);
    call.execution = {};
    REQUIRE_NOTHROW(call.run());
    const std::int64_t count = call.problem.anchors.images * call.problem.anchors.slots;
    for (std::int64_t i = 0; i <= 6; ++i) {
      REQUIRE(call.target_index[i] == (i < count ? kNoBox : 99));
      REQUIRE(call.iou[i] == (i < count ? 0 : 99));
    }
  };
  for (const char* name : {"cpu/native", "cpu/reference"}) {
    require_nothing(name, [](MatchCall& c) { c.problem.anchors.images = 0; });
    require_nothing(name, [](MatchCall& c) { c.problem.anchors.slots = 0; });
  }
  // Anchors without boxes are not read, but must be there.
  for (const char* name : {"cpu/native", "cpu/reference"}) {
    MatchCall call;
    call.implementation = &implementation(name);
    call.problem.target.slots = 0;
    call.problem.target.data = call.problem.offsets.data = nullptr;
    call.execution = {};
    call.run();
    for (std::int64_t i = 0; i <= 6; ++i) {
      REQUIRE(call.target_index[i] == (i < 6 ? kNoBox : 99));
      REQUIRE(call.iou[i] == (i < 6 ? 0 : 99));
    }
  }
}

}  // namespace
}  // namespace boxloss
