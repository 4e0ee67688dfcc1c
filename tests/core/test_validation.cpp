// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace boxloss {
namespace {

using Catch::Matchers::Message;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::StartsWith;

/// Six pairs, and all that forward and backward may be given besides: right, until a test spoils
/// it.
struct Call {
  float boxes[24] = {};
  std::int32_t indices[6] = {};
  alignas(16) float values[24] = {};
  float one = 1;

  LossProblem problem;
  LossOutputs outputs{values, &one, nullptr, nullptr};
  GradOutputs grads{{&one, 0, 0}, {}};
  const void* scale = &one;
  LossGradients gradients;
  alignas(16) double workspace_memory[64] = {};
  Execution execution;
  const Implementation* implementation = &boxloss::implementation("cpu/native");

  Call() {
    problem.loss = Loss::kGiou;
    problem.pred = {boxes, DType::kF32, BoxFormat::kXyxy, 2, 3, 12, 4};
    problem.target = problem.pred;
    execution.workspace = workspace_memory;
    execution.workspace_bytes = sizeof(workspace_memory);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void forward() { loss_forward(*implementation, problem, outputs, execution); }
  void backward() { loss_backward(*implementation, problem, grads, scale, gradients, execution); }
};

using Spoil = std::function<void(Call&)>;

/// What is wrong with pointers, both passes say, but nobody who asks for the workspace.
template <class Error = InvalidArgument>
void require_passes_refused(const Spoil& spoil, const std::string& text) {
  Call call;
  spoil(call);
  REQUIRE_THROWS_MATCHES(call.forward(), Error, Message(text));
  REQUIRE_THROWS_MATCHES(call.backward(), Error, Message(text));
}

void require_runs_refused(const Spoil& spoil, const std::string& text) {
  require_passes_refused(spoil, text);
  Call call;
  spoil(call);
  REQUIRE_NOTHROW(loss_workspace_bytes(*call.implementation, call.problem));
}

/// What is wrong with a problem, a workspace is refused for, too.
template <class Error>
void require_refused(const Spoil& spoil, const std::string& text) {
  require_passes_refused<Error>(spoil, text);
  Call call;
  spoil(call);
  REQUIRE_THROWS_MATCHES(loss_workspace_bytes(*call.implementation, call.problem), Error,
                         Message(text));
}

void require_invalid(const Spoil& spoil, const std::string& text) {
  require_refused<InvalidArgument>(spoil, text);
}

void require_unsupported(const Spoil& spoil, const std::string& text) {
  require_refused<Unsupported>(spoil, text);
}

TEST_CASE("a call without fault is not refused") {
  Call call;
  REQUIRE_NOTHROW(call.forward());
  REQUIRE_NOTHROW(call.backward());
}

TEST_CASE("float64 boxes of either kind are computed with in float64") {
  Call call;
  BoxView &pred = call.problem.pred, &target = call.problem.target;
  REQUIRE(compute_dtype(call.problem) == DType::kF32);
  target.dtype = DType::kI64;
  REQUIRE(compute_dtype(call.problem) == DType::kF32);
  target.dtype = DType::kF64;
  REQUIRE(compute_dtype(call.problem) == DType::kF64);
  pred.dtype = DType::kF64;
  REQUIRE(compute_dtype(call.problem) == DType::kF64);
  target.dtype = DType::kF32;
  REQUIRE(compute_dtype(call.problem) == DType::kF64);
}

TEST_CASE("a problem on another device is refused") {
  require_invalid([](Call& c) { c.problem.device = Device::kCuda; },
                  "the problem is on cuda, but cpu/native was asked to run it");
}

TEST_CASE("boxes are checked") {
  require_invalid([](Call& c) { c.problem.pred.images = -1; },
                  "pred has a negative shape: -1 images, 3 slots");
  require_invalid([](Call& c) { c.problem.target.slots = -2; },
                  "target has a negative shape: 2 images, -2 slots");
  require_invalid([](Call& c) { c.problem.pred.image_stride = -12; },
                  "pred has a negative stride: -12 by image, 4 by slot, 1 by coordinate");
  require_invalid([](Call& c) { c.problem.target.slot_stride = -4; },
                  "target has a negative stride: 12 by image, -4 by slot, 1 by coordinate");
  require_invalid([](Call& c) { c.problem.pred.coordinate_stride = -1; },
                  "pred has a negative stride: 12 by image, 4 by slot, -1 by coordinate");
  require_runs_refused([](Call& c) { c.problem.pred.data = nullptr; }, "pred.data is null");
  require_runs_refused([](Call& c) { c.problem.target.data = nullptr; }, "target.data is null");
}

TEST_CASE("more slots than 64 bits can count are refused") {
  constexpr std::int64_t kMany = std::int64_t{1} << 33;
  require_invalid([](Call& c) { c.problem.pred.images = c.problem.pred.slots = kMany; },
                  "pred has 8589934592 images of 8589934592 slots, which is more than 64 bits can "
                  "count");
}

TEST_CASE("pred must be floating") {
  require_unsupported([](Call& c) { c.problem.pred.dtype = DType::kU8; },
                      "pred is uint8; it must be float64, float32, float16 or bfloat16");
}

TEST_CASE("weight must be floating") {
  require_unsupported([](Call& c) { c.problem.weight = {c.values, DType::kI32}; },
                      "weight is int32; it must be float64, float32, float16 or bfloat16");
}

constexpr auto kNoDType = static_cast<DType>(77);
const std::string kDTypes = "float64, float32, float16, bfloat16, uint8, int16, int32, int64";

TEST_CASE("a dtype that is none is refused where an array has it") {
  require_unsupported([](Call& c) { c.problem.pred.dtype = kNoDType; },
                      "pred is 77; it must be float64, float32, float16 or bfloat16");
  require_unsupported([](Call& c) { c.problem.target.dtype = kNoDType; },
                      "target.dtype is 77; it must be one of " + kDTypes);
  require_unsupported([](Call& c) { c.problem.weight = {c.values, kNoDType}; },
                      "weight is 77; it must be float64, float32, float16 or bfloat16");
  require_unsupported([](Call& c) { c.problem.normalizer = {&c.one, kNoDType}; },
                      "normalizer is 77; it must be float64, float32, int64 or int32");
  require_unsupported([](Call& c) { c.problem.weight = {nullptr, kNoDType}; },
                      "weight is 77; it must be float64, float32, float16 or bfloat16");
  require_unsupported([](Call& c) { c.problem.pred.dtype = DType::kNone; },
                      "pred is none; it must be float64, float32, float16 or bfloat16");
  require_unsupported([](Call& c) { c.problem.target.dtype = DType::kNone; },
                      "target.dtype is none; it must be one of " + kDTypes);
}

TEST_CASE("a number that is no enumerator is refused") {
  Call call;
  call.problem.device = static_cast<Device>(200);  // others may be named by then
  REQUIRE_THROWS_MATCHES(call.forward(), InvalidArgument,
                         MessageMatches(StartsWith("device is 200; it must be one of cpu, cuda")));
  require_invalid([](Call& c) { c.problem.pairing.kind = static_cast<Pairing::Kind>(6); },
                  "pairing.kind is 6; it must be one of dense, zero-padded, lengths, mask, "
                  "offsets, indexed");
  const std::string formats = " is 3; it must be one of xyxy, xywh, cxcywh";
  require_invalid([](Call& c) { c.problem.pred.format = static_cast<BoxFormat>(3); },
                  "pred.format" + formats);
  require_invalid([](Call& c) { c.problem.target.format = static_cast<BoxFormat>(3); },
                  "target.format" + formats);
  require_invalid([](Call& c) { c.problem.reduction = static_cast<Reduction>(3); },
                  "reduction is 3; it must be one of none, sum, mean");
  require_invalid([](Call& c) { c.problem.eps_mode = static_cast<EpsMode>(2); },
                  "eps_mode is 2; it must be one of add, clamp");
  LossProblem p;
  p.eps_mode = static_cast<EpsMode>(255);
  REQUIRE_THROWS_AS(check_options(p), InvalidArgument);
}

TEST_CASE("a size that was forgotten is refused") {
  require_invalid([](Call& c) { c.problem.pred.slots = BoxView().slots; },
                  "pred.slots is not set; it must be the number of boxes of each image");
  require_invalid([](Call& c) { c.problem.target.slots = BoxView().slots; },
                  "target.slots is not set; it must be the number of boxes of each image");
  LossProblem p;
  REQUIRE_THROWS_MATCHES(loss_rows(p), InvalidArgument,
                         Message("pred.slots is not set; it must be the number of boxes of each "
                                 "image"));
  p.pairing.kind = Pairing::Kind::kOffsets;
  REQUIRE_THROWS_AS(loss_rows(p), InvalidArgument);
  p.pairing.kind = Pairing::Kind::kIndexed;
  REQUIRE_THROWS_AS(loss_rows(p), InvalidArgument);
}

TEST_CASE("an empty parallel_for, and a workspace that is not aligned, are refused") {
  require_runs_refused([](Call& c) { c.execution.parallel_for = {}; },
                       "parallel_for is empty; it must run tasks, as boxloss::parallel_for does");
  Call call;
  call.execution.workspace = call.workspace_memory + 1;
  call.execution.workspace_bytes -= 8;
  REQUIRE_THROWS_MATCHES(call.forward(), InvalidArgument,
                         Message("workspace does not lie on a multiple of 16 bytes"));
}

TEST_CASE("pred and target must have one shape") {
  require_invalid([](Call& c) { c.problem.target.slots = 2; },
                  "target has shape (2, 2, 4), pred has (2, 3, 4); they must be equal");
  require_invalid([](Call& c) { c.problem.target.images = 1; },
                  "target has shape (1, 3, 4), pred has (2, 3, 4); they must be equal");
}

Spoil pairing(Pairing::Kind kind, bool with_data, DType dtype = DType::kI32) {
  return [=](Call& c) {
    c.problem.pairing.kind = kind;
    c.problem.pairing.data = {with_data ? c.indices : nullptr, dtype};
    if (kind == Pairing::Kind::kOffsets) c.problem.target.images = 1;
  };
}

TEST_CASE("pairings without an array take none") {
  const char* const text = "pairing.data must not be given for a dense or zero-padded pairing";
  require_invalid(pairing(Pairing::Kind::kDense, true), text);
  require_invalid(pairing(Pairing::Kind::kZeroPadded, true), text);
}

TEST_CASE("lengths are checked") {
  require_invalid(pairing(Pairing::Kind::kLengths, false, ArrayView().dtype),
                  "pairing.data.dtype is not set; it must be that of lengths, (images) integers");
  require_unsupported(pairing(Pairing::Kind::kLengths, true, DType::kF32),
                      "lengths is float32; it must be int32 or int64");
}

TEST_CASE("a mask is checked") {
  require_invalid(
      pairing(Pairing::Kind::kMask, false, ArrayView().dtype),
      "pairing.data.dtype is not set; it must be that of a mask, (images, slots) bytes");
  require_unsupported(pairing(Pairing::Kind::kMask, true, DType::kI32),
                      "mask is int32; it must be uint8");
}

TEST_CASE("offsets are checked") {
  require_invalid(
      pairing(Pairing::Kind::kOffsets, false, ArrayView().dtype),
      "pairing.data.dtype is not set; it must be that of offsets, (images + 1) integers");
  require_unsupported(pairing(Pairing::Kind::kOffsets, true, DType::kU8),
                      "offsets is uint8; it must be int32 or int64");
  require_invalid(
      [](Call& c) {
        pairing(Pairing::Kind::kOffsets, true)(c);
        c.problem.target.images = 2;
      },
      "target must be one image of T slots with offsets, but has 2 images");
}

/// Two sets of three pairs, each side by index into all boxes; right, until `spoil`.
Spoil indexed(const Spoil& spoil) {
  return [=](Call& c) {
    c.problem.pairing.kind = Pairing::Kind::kIndexed;
    c.problem.pairing.sets = 2;
    c.problem.pairing.pairs = 3;
    c.problem.pred.rows = c.problem.target.rows = {c.indices, DType::kI32};
    spoil(c);
  };
}

TEST_CASE("pairs by index without fault are not refused") {
  const auto require_ok = [](const Spoil& change) {
    Call call;
    indexed(change)(call);
    REQUIRE_NOTHROW(call.forward());
    REQUIRE_NOTHROW(call.backward());
  };
  require_ok([](Call&) {});
  require_ok([](Call& c) { c.problem.pred.rows = {}; });
  require_ok([](Call& c) { c.problem.target.rows = {}; });
  require_ok([](Call& c) { c.problem.pred.slots = c.problem.target.images = 1; });
  require_ok([](Call& c) {  // no pairs: an empty array may be null
    c.problem.pairing.pairs = 0;
    c.problem.pred.rows = c.problem.target.rows = {};
    c.problem.pred.slots = 1;
  });
}

TEST_CASE("pairs by index are checked") {
  require_invalid(indexed([](Call& c) { c.problem.pairing.data = {c.indices, DType::kI32}; }),
                  "pairing.data must not be given for an indexed pairing");
  require_invalid(indexed([](Call& c) { c.problem.pairing.sets = -1; }),
                  "pairing has a negative shape: -1 sets of 3 pairs");
  require_invalid(indexed([](Call& c) { c.problem.pairing.pairs = Pairing().pairs; }),
                  "pairing.pairs is not set; it must be the number of pairs of each set");
  require_unsupported(indexed([](Call& c) {
                        c.problem.pairing.pairs = 0;
                        c.problem.pred.rows.dtype = kNoDType;
                      }),
                      "pred.rows is 77; it must be int32 or int64");
  require_invalid(indexed([](Call& c) { c.problem.pairing.pairs = -3; }),
                  "pairing has a negative shape: 2 sets of -3 pairs");
  constexpr std::int64_t kMany = std::int64_t{1} << 33;
  require_invalid(indexed([](Call& c) { c.problem.pairing.sets = kMany; }),
                  "pairing has 8589934592 sets, more than 2147483647");
  require_invalid(
      indexed([](Call& c) {
        c.problem.pairing.sets = 1 << 30;
        c.problem.pairing.pairs = kMany;
      }),
      "pairing has 1073741824 sets of 8589934592 pairs, which is more than 64 bits can count");
  require_invalid(
      indexed([](Call& c) { c.problem.pred.rows = c.problem.target.rows = {}; }),
      "pred.rows.dtype and target.rows.dtype are not set; an indexed pairing needs one of them");
}

TEST_CASE("rows are checked") {
  require_unsupported(indexed([](Call& c) { c.problem.pred.rows.dtype = DType::kU8; }),
                      "pred.rows is uint8; it must be int32 or int64");
  require_unsupported(indexed([](Call& c) { c.problem.target.rows.dtype = DType::kF32; }),
                      "target.rows is float32; it must be int32 or int64");
}

TEST_CASE("a side without rows must have one box for each pair") {
  require_invalid(indexed([](Call& c) {
                    c.problem.pred.rows = {};
                    c.problem.pred.slots = 2;
                  }),
                  "pred has 2 images of 2 boxes; without pred.rows it must have one for each of 2 "
                  "sets of 3 pairs");
  require_invalid(indexed([](Call& c) {
                    c.problem.target.rows = {};
                    c.problem.target.images = 1;
                  }),
                  "target has 1 images of 3 boxes; without target.rows it must have one for each "
                  "of 2 sets of 3 pairs");
}

TEST_CASE("rows are for pairs by index only") {
  for (const auto kind : {Pairing::Kind::kDense, Pairing::Kind::kZeroPadded,
                          Pairing::Kind::kLengths, Pairing::Kind::kMask, Pairing::Kind::kOffsets}) {
    const std::string text = std::string("pred.rows and target.rows must not be given for a ") +
                             name_of(kind) + " pairing";
    require_invalid(
        [&](Call& c) {
          c.problem.pairing.kind = kind;
          c.problem.pred.rows = {c.indices, DType::kI32};
        },
        text);
    require_invalid(
        [&](Call& c) {
          c.problem.pairing.kind = kind;
          c.problem.target.rows = {c.indices, DType::kI64};
        },
        text);
  }
}

TEST_CASE("eps must be finite and not negative") {
  const double infinity = std::numeric_limits<double>::infinity();
  require_invalid([](Call& c) { c.problem.eps = -0.5; },
                  "eps is -0.5; it must be finite and not negative, as a float32");
  require_invalid([=](Call& c) { c.problem.eps = infinity; },
                  "eps is inf; it must be finite and not negative, as a float32");
  require_invalid([](Call& c) { c.problem.eps = std::numeric_limits<double>::quiet_NaN(); },
                  "eps is nan; it must be finite and not negative, as a float32");
  require_invalid([](Call& c) { c.problem.eps = 1e300; },
                  "eps is 1e+300; it must be finite and not negative, as a float32");
  Call in_float64;
  in_float64.problem.pred = {in_float64.boxes, DType::kF64, BoxFormat::kXyxy, 1, 3, 12, 4};
  in_float64.problem.target = in_float64.problem.pred;
  in_float64.problem.eps = 1e300;
  in_float64.outputs.scale = in_float64.values + 4;
  REQUIRE_NOTHROW(in_float64.forward());
}

TEST_CASE("a normalizer is checked") {
  for (const Reduction reduction : {Reduction::kNone, Reduction::kSum}) {
    require_invalid(
        [=](Call& c) {
          c.problem.normalizer = {&c.one, DType::kF32};
          c.problem.reduction = reduction;
        },
        "normalizer needs reduction 'mean', which it redefines");
  }
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kU8, DType::kI16}) {
    require_unsupported([=](Call& c) { c.problem.normalizer = {&c.one, dtype}; },
                        std::string("normalizer is ") + name_of(dtype) +
                            "; it must be float64, float32, int64 or int32");
  }
}

TEST_CASE("normalizer_stride must be 0 or 1") {
  for (const std::int64_t stride : {-1, 2}) {
    require_invalid([=](Call& c) { c.problem.normalizer_stride = stride; },
                    "normalizer_stride is " + std::to_string(stride) + "; it must be 0 or 1");
  }
}

TEST_CASE("a forgotten loss is refused") {
  require_invalid([](Call& c) { c.problem.loss = Loss{}; },
                  "loss is not set; it must be one of " + names_of(kLosses));
}

TEST_CASE("what an implementation does not say that it serves is refused") {
  Implementation modest = implementation("cpu/native");
  modest.box_loss.losses = {};
  require_refused<Unsupported>([&](Call& c) { c.implementation = &modest; },
                               "cpu/native does not serve the loss 'giou', only none");
  modest = implementation("cpu/native");
  modest.box_loss.pairings = {Pairing::Kind::kMask};
  require_refused<Unsupported>([&](Call& c) { c.implementation = &modest; },
                               "cpu/native does not serve the pairing dense");
  require_refused<Unsupported>(indexed([&](Call& c) { c.implementation = &modest; }),
                               "cpu/native does not serve the pairing indexed");
  modest = implementation("cpu/native");
  modest.box_loss.backward = nullptr;
  require_refused<Unsupported>([&](Call& c) { c.implementation = &modest; },
                               "cpu/native does not serve box_loss");
  modest.box_loss = {};
  require_refused<Unsupported>([&](Call& c) { c.implementation = &modest; },
                               "cpu/native does not serve box_loss");
  require_invalid([](Call& c) { c.problem.loss = static_cast<Loss>(200); },
                  "loss is 200; it must be one of " + names_of(kLosses));
}

TEST_CASE("losses are known by their words") {
  kLosses.for_each([](Loss loss) { REQUIRE(loss_named(name_of(loss)) == loss); });
  REQUIRE(loss_named("giou") == Loss::kGiou);
  for (const char* word : {"", "GIoU", "unset", "unknown"}) {
    REQUIRE_THROWS_MATCHES(
        loss_named(word), InvalidArgument,
        Message(std::string("loss is '") + word + "'; allowed: " + names_of(kLosses)));
  }
}

/// One byte behind where it should be.
template <class T>
T* off(T* pointer) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

const std::string kOffFour = " does not lie on a multiple of the 4 bytes of a ";
const std::string kOffEight = " does not lie on a multiple of the 8 bytes of a ";

TEST_CASE("an array that does not lie on its elements is refused") {
  require_runs_refused([&](Call& c) { c.problem.pred.data = off(c.boxes); },
                       "pred" + kOffFour + "float32");
  require_runs_refused(
      [&](Call& c) {
        c.problem.target.dtype = DType::kI16;
        c.problem.target.data = off(c.boxes);
      },
      "target does not lie on a multiple of the 2 bytes of a int16");
  require_runs_refused([&](Call& c) { c.problem.weight = {off(c.values), DType::kF32}; },
                       "weight" + kOffFour + "float32");
  require_runs_refused([&](Call& c) { c.problem.normalizer = {off(&c.one), DType::kI32}; },
                       "normalizer" + kOffFour + "int32");
  require_runs_refused(
      [&](Call& c) {
        pairing(Pairing::Kind::kLengths, true)(c);
        c.problem.pairing.data.data = off(c.indices);
      },
      "lengths" + kOffFour + "int32");
  require_runs_refused(indexed([](Call& c) { c.problem.pred.rows.data = off(c.indices); }),
                       "pred.rows" + kOffFour + "int32");
  require_runs_refused(
      indexed([](Call& c) { c.problem.target.rows = {off(c.boxes), DType::kI64}; }),
      "target.rows" + kOffEight + "int64");
}

template <class Error>
void require_forward_refused(const Spoil& spoil, const std::string& text) {
  Call call;
  spoil(call);
  REQUIRE_THROWS_MATCHES(call.forward(), Error, Message(text));
}

TEST_CASE("forward checks its outputs and its workspace") {
  require_forward_refused<InvalidArgument>([](Call& c) { c.outputs.loss = nullptr; },
                                           "outputs.loss is null");
  require_forward_refused<InvalidArgument>([](Call& c) { c.outputs.scale = nullptr; },
                                           "outputs.scale is null");
  require_forward_refused<InvalidArgument>([](Call& c) { c.outputs.loss = off(c.values); },
                                           "outputs.loss" + kOffFour + "float32");
  require_forward_refused<InvalidArgument>([](Call& c) { c.outputs.scale = off(&c.one); },
                                           "outputs.scale" + kOffFour + "float32");
  require_forward_refused<InvalidArgument>([](Call& c) { c.outputs.l1 = off(c.values); },
                                           "outputs.l1" + kOffFour + "float32");
  require_forward_refused<InvalidArgument>([](Call& c) { c.outputs.iou = off(c.values); },
                                           "outputs.iou" + kOffFour + "float32");
  const std::string needed =
      std::to_string(loss_workspace_bytes(implementation("cpu/native"), Call().problem));
  require_forward_refused<InvalidArgument>([](Call& c) { c.execution.workspace_bytes = 1; },
                                           "workspace has 1 bytes; this problem needs " + needed);
  require_forward_refused<InvalidArgument>(
      [](Call& c) { c.execution.workspace = nullptr; },
      "workspace is null; this problem needs " + needed + " bytes");
}

TEST_CASE("an unreduced loss without rows may be null") {
  Call call;
  call.problem.pred.slots = call.problem.target.slots = 0;
  call.problem.reduction = Reduction::kNone;
  call.outputs.loss = nullptr;
  REQUIRE_NOTHROW(call.forward());
}

const char* const kUnlikeFormats =
    "l1 is of values in one format, but pred is cxcywh and target xyxy";

TEST_CASE("forward's l1 needs one format, its iou does not") {
  const auto with_formats = [](Call& c) { c.problem.pred.format = BoxFormat::kCxcywh; };
  require_forward_refused<InvalidArgument>(
      [&](Call& c) {
        with_formats(c);
        c.outputs.l1 = c.values;
      },
      kUnlikeFormats);
  Call call;
  with_formats(call);
  call.outputs.iou = call.values + 12;
  REQUIRE_NOTHROW(call.forward());
  REQUIRE_THROWS_MATCHES(check_options(call.problem, {Extra::kL1}), InvalidArgument,
                         Message(kUnlikeFormats));
  REQUIRE_NOTHROW(check_options(call.problem, {Extra::kIou}));
}

TEST_CASE("extras that an implementation does not say that it serves are refused") {
  Implementation modest = implementation("cpu/native");
  modest.box_loss.extras = {};
  require_forward_refused<Unsupported>(
      [&](Call& c) {
        c.implementation = &modest;
        c.outputs.l1 = c.values;
      },
      "cpu/native does not serve the output l1");
  require_forward_refused<Unsupported>(
      [&](Call& c) {
        c.implementation = &modest;
        c.outputs.iou = c.values;
      },
      "cpu/native does not serve the output iou");
  Call backward;
  backward.implementation = &modest;
  REQUIRE_NOTHROW(backward.backward());
  backward.grads.l1.data = &backward.one;
  REQUIRE_THROWS_MATCHES(backward.backward(), Unsupported,
                         Message("cpu/native does not serve the output l1"));
}

template <class Error>
void require_backward_refused(const Spoil& spoil, const std::string& text) {
  Call call;
  spoil(call);
  REQUIRE_THROWS_MATCHES(call.backward(), Error, Message(text));
}

TEST_CASE("backward checks its inputs and its outputs") {
  require_backward_refused<InvalidArgument>([](Call& c) { c.grads.loss.data = nullptr; },
                                            "grads.loss.data and grads.l1.data are null");
  require_backward_refused<InvalidArgument>([](Call& c) { c.scale = nullptr; }, "scale is null");
  require_backward_refused<InvalidArgument>(
      [](Call& c) { c.gradients.weight = c.values; },
      "gradients.weight is wanted, but the problem has no weight");
  require_backward_refused<Unsupported>(
      [](Call& c) {
        c.problem.target.dtype = DType::kU8;
        c.gradients.target = c.values;
      },
      "target is uint8, which has no gradient");
  require_backward_refused<InvalidArgument>([](Call& c) { c.grads.loss.data = off(&c.one); },
                                            "grads.loss" + kOffFour + "float32");
  require_backward_refused<InvalidArgument>([](Call& c) { c.scale = off(&c.one); },
                                            "scale" + kOffFour + "float32");
  require_backward_refused<InvalidArgument>([](Call& c) { c.gradients.pred = off(c.values); },
                                            "gradients.pred" + kOffFour + "float32");
  require_backward_refused<InvalidArgument>([](Call& c) { c.gradients.target = off(c.values); },
                                            "gradients.target" + kOffFour + "float32");
  require_backward_refused<InvalidArgument>(
      [](Call& c) {
        c.problem.weight = {c.values, DType::kF32};
        c.gradients.weight = off(c.values);
      },
      "gradients.weight" + kOffFour + "float32");
}

TEST_CASE("backward may come from l1 alone") {
  Call call;
  call.grads = {{}, {&call.one, 0, 0}};
  REQUIRE_NOTHROW(call.backward());
  require_backward_refused<InvalidArgument>([](Call& c) { c.grads.l1.data = off(&c.one); },
                                            "grads.l1" + kOffFour + "float32");
  require_backward_refused<InvalidArgument>(
      [](Call& c) {
        c.grads.l1.data = &c.one;
        c.problem.pred.format = BoxFormat::kCxcywh;
      },
      kUnlikeFormats);
}

/// The 16-bit gradient of indexed boxes on the elements, but not on the boxes.
TEST_CASE("gradients that threads add to must lie on whole boxes") {
  for (const int elements : {1, 2, 3}) {
    const auto behind = [=](Call& c) {
      return reinterpret_cast<std::uint16_t*>(c.values) + elements;
    };
    require_backward_refused<InvalidArgument>(indexed([&](Call& c) {
                                                c.problem.pred.dtype = DType::kBF16;
                                                c.gradients.pred = behind(c);
                                              }),
                                              "gradients.pred" + kOffEight + "bfloat16 box");
    require_backward_refused<InvalidArgument>(indexed([&](Call& c) {
                                                c.problem.target.dtype = DType::kF16;
                                                c.gradients.target = behind(c);
                                              }),
                                              "gradients.target" + kOffEight + "float16 box");
    Call own_rows;  // those without an index are not added to
    indexed([&](Call& c) {
      c.problem.pred.rows = {};
      c.problem.pred.dtype = DType::kBF16;
      c.gradients.pred = behind(c);
    })(own_rows);
    REQUIRE_NOTHROW(own_rows.backward());
  }
}

/// For pred and target alike: two images of three boxes with other strides.
Spoil with_kept_strides(std::int64_t image, std::int64_t slot, std::int64_t coordinate,
                        std::int64_t images = 2, std::int64_t slots = 3) {
  return [=](Call& c) {
    for (BoxView* const boxes : {&c.problem.pred, &c.problem.target}) {
      boxes->images = images;
      boxes->slots = slots;
      boxes->image_stride = image;
      boxes->slot_stride = slot;
      boxes->coordinate_stride = coordinate;
    }
    c.gradients.keeps_pred_strides = true;
  };
}

TEST_CASE("only gradients of boxes without gaps or overlaps keep strides") {
  for (const auto& [image, slot, coordinate] :
       {std::array{12, 4, 1}, {12, 1, 3}, {3, 1, 6}, {4, 8, 1}, {1, 2, 6}, {1, 8, 2}}) {
    Call call;
    with_kept_strides(image, slot, coordinate)(call);
    call.gradients.pred = call.values;
    REQUIRE_NOTHROW(call.backward());
  }
  // To the only one of its kind, a stride never leads.
  for (const std::int64_t any : {0, 1, 4, 1000}) {
    for (const Spoil& change :
         {with_kept_strides(any, 1, 3, 1, 3), with_kept_strides(4, any, 1, 2, 1),
          with_kept_strides(any, any, 1, 1, 1)}) {
      Call call;
      change(call);
      call.gradients.pred = call.values;
      REQUIRE_NOTHROW(call.backward());
    }
  }
  const std::string text = " is set, but the boxes have gaps or overlap: their strides are ";
  const std::string pred = "gradients.keeps_pred_strides",
                    target = "gradients.keeps_target_strides";
  require_backward_refused<InvalidArgument>(
      with_kept_strides(13, 4, 1), pred + text + "13 by image, 4 by slot, 1 by coordinate");
  require_backward_refused<InvalidArgument>(with_kept_strides(0, 1, 3),
                                            pred + text + "0 by image, 1 by slot, 3 by coordinate");
  require_backward_refused<InvalidArgument>(
      with_kept_strides(12, 1, 4), pred + text + "12 by image, 1 by slot, 4 by coordinate");
  require_backward_refused<InvalidArgument>(
      with_kept_strides(12, 1, 1), pred + text + "12 by image, 1 by slot, 1 by coordinate");
  require_backward_refused<InvalidArgument>(
      [](Call& c) {
        c.problem.target.slot_stride = 0;
        c.gradients.keeps_target_strides = true;
      },
      target + text + "12 by image, 0 by slot, 1 by coordinate");
  require_backward_refused<InvalidArgument>(
      indexed([](Call& c) { c.gradients.keeps_pred_strides = true; }),
      pred + " is set, but gradients of pairs by index are contiguous");
}

/// Pairs by index, so that all arrays may be given.
Spoil with_array(ArrayView LossProblem::* array, const ArrayView& view) {
  return indexed([=](Call& c) { c.problem.*array = view; });
}

TEST_CASE("a pointer without a dtype, and a dtype without a pointer, are refused") {
  const std::string no_data = ".data is null; where ", must_not = ".dtype is set it must not be";
  const std::string no_dtype = ".dtype is not set; it must be, where ";
  const auto require_both = [&](const Spoil& data, const Spoil& dtype, const std::string& name) {
    require_runs_refused(dtype, name + no_data + name + must_not);
    require_runs_refused(data, name + no_dtype + name + ".data is");
    Call empty;
    dtype(empty);
    BoxView &pred = empty.problem.pred, &target = empty.problem.target;
    pred.slots = target.slots = empty.problem.pairing.pairs = 0;  // nothing is read
    REQUIRE_NOTHROW(empty.forward());
    REQUIRE_NOTHROW(empty.backward());
  };
  const float one = 1;
  const ArrayView data = {&one, DType::kNone}, dtype = {nullptr, DType::kF32};
  const auto weight = &LossProblem::weight, normalizer = &LossProblem::normalizer;
  require_both(with_array(weight, data), with_array(weight, dtype), "weight");
  require_both(with_array(normalizer, data), with_array(normalizer, dtype), "normalizer");
  const ArrayView indices = {nullptr, DType::kI32};
  require_both(indexed([=](Call& c) { c.problem.pred.rows = data; }),
               indexed([=](Call& c) { c.problem.pred.rows = indices; }), "pred.rows");
  require_both(indexed([=](Call& c) { c.problem.target.rows = data; }),
               indexed([=](Call& c) { c.problem.target.rows = indices; }), "target.rows");
  require_runs_refused(pairing(Pairing::Kind::kDense, true, DType::kNone),
                       "pairing.data" + no_dtype + "pairing.data.data is");
  for (const auto kind : {Pairing::Kind::kLengths, Pairing::Kind::kMask, Pairing::Kind::kOffsets}) {
    const std::string name = name_of(kind);
    require_runs_refused(
        pairing(kind, false, kind == Pairing::Kind::kMask ? DType::kU8 : DType::kI32),
        name + no_data + name + must_not);
  }
}

/// Which optional arrays the function of a backend last found.
std::vector<bool> found;
void look_at(const LossProblem& p) {
  found = {p.pred.rows.data != nullptr, p.target.rows.data != nullptr,
           p.pairing.data.data != nullptr, p.weight.data != nullptr, p.normalizer.data != nullptr};
}

TEST_CASE("an implementation knows what is given by its pointer, before there are pointers too") {
  Implementation looking = implementation("cpu/native");
  looking.box_loss.workspace_bytes = [](const LossProblem& p) -> std::size_t {
    look_at(p);
    return 0;
  };
  Call call;
  const auto require_found = [&](const std::vector<bool>& expected) {
    found = {};
    REQUIRE(loss_workspace_bytes(looking, call.problem) == 0);
    REQUIRE(found == expected);
  };
  require_found({false, false, false, false, false});
  call.problem.weight.data = call.values;  // without a dtype
  require_found({false, false, false, false, false});
  call.problem.weight = {nullptr, DType::kF32};
  require_found({false, false, false, true, false});
  call.problem.normalizer.dtype = DType::kF64;
  call.problem.pairing = {Pairing::Kind::kMask, {nullptr, DType::kU8}};
  require_found({false, false, true, true, true});
  call.problem.pairing = {Pairing::Kind::kIndexed, {}, 2, 3};
  call.problem.pred.rows.dtype = DType::kI64;
  require_found({true, false, false, true, true});
}

TEST_CASE("a weight without elements is given, and has a gradient") {
  Call call;
  call.problem.pred.slots = call.problem.target.slots = 0;
  call.problem.weight.dtype = DType::kF32;
  call.gradients.weight = call.values;
  REQUIRE_NOTHROW(call.backward());
}

TEST_CASE("only a reduced loss of any slots takes a workspace") {
  Call call;
  REQUIRE(loss_workspace_bytes(*call.implementation, call.problem) > 0);
  call.problem.reduction = Reduction::kNone;
  REQUIRE(loss_workspace_bytes(*call.implementation, call.problem) == 0);
  call.execution.workspace = nullptr;
  call.execution.workspace_bytes = 0;
  REQUIRE_NOTHROW(call.forward());
  call.problem.reduction = Reduction::kSum;
  call.problem.pred.slots = call.problem.target.slots = 0;
  REQUIRE(loss_workspace_bytes(*call.implementation, call.problem) == 0);
  REQUIRE_NOTHROW(call.forward());
}

TEST_CASE("every error is an Error") {
  REQUIRE_THROWS_AS(throw InvalidArgument(""), Error);
  REQUIRE_THROWS_AS(throw Unsupported(""), Error);
  REQUIRE_THROWS_AS(throw NotCompiled(""), Error);
  REQUIRE_THROWS_AS(throw NoDevice(""), Error);
  REQUIRE_THROWS_AS(throw DeviceError(""), Error);
}

}  // namespace
}  // namespace boxloss
