// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <iterator>
#include <type_traits>

#include "refusals.hpp"

namespace boxloss {
namespace {

using Catch::Matchers::MessageMatches;
using Catch::Matchers::StartsWith;
using Kind = Pairing::Kind;

/// Six pairs, and all that forward and backward may be given besides: right, until a test spoils
/// it.
struct Call : Prepared {
  LossProblem p;
  LossOutputs outputs{output(0), output(1), nullptr, nullptr};
  GradOutputs grads{{zeros, 0, 0}, {}};
  const void* scale = zeros;
  LossGradients gradients;

  Call() {
    p.loss = Loss::kGiou;
    p.pred = p.target = {zeros, DType::kF32, BoxFormat::kXyxy, 2, 3, 12, 4};
  }

  void pair(Kind kind, ArrayView data) {
    p.pairing.kind = kind;
    p.pairing.data = data;
    if (kind == Kind::kOffsets) p.target.images = 1;
  }
  /// Two sets of three pairs, each side by index into all boxes.
  void pair_by_index() {
    p.pairing = {Kind::kIndexed, {}, 2, 3};
    p.pred.rows = p.target.rows = {zeros, DType::kI32};
  }
  /// For pred and target alike.
  void keep_strides(std::int64_t image, std::int64_t slot, std::int64_t coordinate,
                    std::int64_t images = 2, std::int64_t slots = 3) {
    p.pred = {zeros, DType::kF32, BoxFormat::kXyxy, images, slots, image, slot, coordinate};
    p.target = p.pred;
    gradients.keeps_pred_strides = true;
  }
  void be_empty() { p.pred.slots = p.target.slots = p.pairing.pairs = 0; }

  void forward() { loss_forward(implementation, p, outputs, execution); }
  void backward() { loss_backward(implementation, p, grads, scale, gradients, execution); }
  void ask_for_workspace() { (void)loss_workspace_bytes(implementation, p); }
};

using Rows = Refusals<Call>;

void require_passes_ok(const Changes<Call>& changes) {
  require_ok(changes, &Call::forward);
  require_ok(changes, &Call::backward);
}

/// What is wrong with a problem, a workspace is refused for, too.
template <class Error>
void require_problems_refused(const Rows& rows) {
  require_refused<Error>(rows, &Call::forward);
  require_refused<Error>(rows, &Call::backward);
  require_refused<Error>(rows, &Call::ask_for_workspace);
}

/// What is wrong with pointers, both passes say, but nobody who asks for the workspace.
void require_runs_refused(const Rows& rows) {
  require_refused<InvalidArgument>(rows, &Call::forward);
  require_refused<InvalidArgument>(rows, &Call::backward);
  for (const Refusal<Call>& row : rows) require_ok<Call>({row.spoil}, &Call::ask_for_workspace);
}

// clang-format off
TEST_CASE("a call without fault is not refused") {
  require_passes_ok({
      [](Call&) {},
      [](Call& c) { c.p.target.dtype = DType::kU8; },
      [](Call& c) { c.p.pred.dtype = c.p.target.dtype = DType::kF64; c.p.eps = 1e300; },
      [](Call& c) { c.pair_by_index(); },
      [](Call& c) { c.pair_by_index(); c.p.pred.rows = {}; },
      [](Call& c) { c.pair_by_index(); c.p.target.rows = {}; },
      // An index may lead to fewer boxes than there are pairs.
      [](Call& c) { c.pair_by_index(); c.p.pred.slots = 1; },
      [](Call& c) { c.pair_by_index(); c.p.target.slots = 1; },
      // Of no pairs an empty array may be null, a weight without elements has a gradient, and without sets there are no results.
      [](Call& c) { c.pair_by_index(); c.p.pairing.pairs = 0; c.p.pred.rows = c.p.target.rows = {}; c.p.pred.slots = 1; },
      [](Call& c) { c.be_empty(); c.p.weight.dtype = DType::kF32; c.gradients.weight = c.output(2); },
      [](Call& c) { c.be_empty(); c.p.pred.data = c.p.target.data = nullptr; },
      [](Call& c) { c.p.pred.images = c.p.target.images = 0; c.p.pred.data = c.p.target.data = nullptr; },
      [](Call& c) { c.pair_by_index(); c.p.pairing.sets = 0; c.outputs = {}; c.grads = {}; c.scale = nullptr; },
  });
  require_ok<Call>({
      [](Call& c) { c.be_empty(); c.p.reduction = Reduction::kNone; c.outputs.loss = nullptr; },
      [](Call& c) { c.p.pred.format = BoxFormat::kCxcywh; c.outputs.iou = c.output(2); },  // but l1 needs one format
      // Only a reduced loss of any slots takes a workspace.
      [](Call& c) { c.p.reduction = Reduction::kNone; c.execution = {}; },
      [](Call& c) { c.be_empty(); c.execution = {}; },
  }, &Call::forward);
  require_ok<Call>({
      [](Call& c) { c.implementation.box_loss.extras = {}; },
      [](Call& c) { c.grads = {{}, {c.zeros, 0, 0}}; },  // of l1 alone
  }, &Call::backward);
}

TEST_CASE("a problem that is wrong is refused by all that are given it") {
  const std::string formats = " is 3; it must be one of xyxy, xywh, cxcywh";
  const std::string equal = "; they must be equal", bytes = "pairing.data" + kNoDTypeSet;
  const std::string finite = "; it must be finite and not negative, as a float32";
  const std::string no_rows = "pred.rows and target.rows must not be given for a ";
  const std::string slots = " is not set; it must be the number of boxes of each image";
  require_problems_refused<InvalidArgument>({
      {[](Call& c) { c.p.device = Device::kCuda; }, "the problem is on cuda, but cpu/native was asked to run it"},
      {[](Call& c) { c.p.loss = Loss{}; }, "loss is not set; it must be one of " + names_of(kLosses)},
      {[](Call& c) { c.p.loss = static_cast<Loss>(200); }, "loss is 200; it must be one of " + names_of(kLosses)},
      {[](Call& c) { c.p.pairing.kind = static_cast<Kind>(6); }, "pairing.kind is 6; it must be one of dense, zero-padded, lengths, mask, offsets, indexed"},
      {[](Call& c) { c.p.pred.format = kNoFormat; }, "pred.format" + formats},
      {[](Call& c) { c.p.target.format = kNoFormat; }, "target.format" + formats},
      {[](Call& c) { c.p.reduction = static_cast<Reduction>(3); }, "reduction is 3; it must be one of none, sum, mean"},
      {[](Call& c) { c.p.eps_mode = kNoEpsMode; }, "eps_mode is 2; it must be one of add, clamp"},
      // --- boxes
      {[](Call& c) { c.p.pred.slots = BoxView().slots; }, "pred.slots" + slots},
      {[](Call& c) { c.p.target.slots = BoxView().slots; }, "target.slots" + slots},
      {[](Call& c) { c.p.pred.images = -1; }, "pred has a negative shape: -1 images, 3 slots"},
      {[](Call& c) { c.p.target.slots = -2; }, "target has a negative shape: 2 images, -2 slots"},
      {[](Call& c) { c.p.pred.images = c.p.pred.slots = kMany; }, "pred has 8589934592 images of 8589934592 slots, which is more than 64 bits can count"},
      {[](Call& c) { c.p.pred.image_stride = kUnsetStride; }, "pred.image_stride is not set; it must lead from each image to the next"},
      {[](Call& c) { c.p.target.image_stride = kUnsetStride; }, "target.image_stride is not set; it must lead from each image to the next"},
      {[](Call& c) { c.p.pred.image_stride = -12; }, "pred has a negative stride: -12 by image, 4 by slot, 1 by coordinate"},
      {[](Call& c) { c.p.target.slot_stride = -4; }, "target has a negative stride: 12 by image, -4 by slot, 1 by coordinate"},
      {[](Call& c) { c.p.pred.coordinate_stride = -1; }, "pred has a negative stride: 12 by image, 4 by slot, -1 by coordinate"},
      {[](Call& c) { c.p.target.slots = 2; }, "target has shape (2, 2, 4), pred has (2, 3, 4)" + equal},
      {[](Call& c) { c.p.target.images = 1; }, "target has shape (1, 3, 4), pred has (2, 3, 4)" + equal},
      // --- pairings
      {[](Call& c) { c.pair(Kind::kDense, {c.zeros, DType::kI32}); }, "pairing.data must not be given for a dense or zero-padded pairing"},
      {[](Call& c) { c.pair(Kind::kZeroPadded, {c.zeros, DType::kI32}); }, "pairing.data must not be given for a dense or zero-padded pairing"},
      {[](Call& c) { c.pair(Kind::kLengths, {}); }, bytes + "lengths, (images) integers"},
      {[](Call& c) { c.pair(Kind::kMask, {}); }, bytes + "a mask, (images, slots) bytes"},
      {[](Call& c) { c.pair(Kind::kOffsets, {}); }, bytes + "offsets, (images + 1) integers"},
      {[](Call& c) { c.pair(Kind::kOffsets, {c.zeros, DType::kI32}); c.p.target.images = 2; }, "target must be one image of T slots with offsets, but has 2 images"},
      {[](Call& c) { c.p.pred.rows = {c.zeros, DType::kI32}; }, no_rows + "dense pairing"},
      {[](Call& c) { c.pair(Kind::kOffsets, {c.zeros, DType::kI32}); c.p.target.rows = {c.zeros, DType::kI32}; }, no_rows + "offsets pairing"},
      {[](Call& c) { c.pair_by_index(); c.p.pairing.data = {c.zeros, DType::kI32}; }, "pairing.data must not be given for an indexed pairing"},
      {[](Call& c) { c.pair_by_index(); c.p.pairing.pairs = Pairing().pairs; }, "pairing.pairs is not set; it must be the number of pairs of each set"},
      {[](Call& c) { c.pair_by_index(); c.p.pairing.sets = -1; }, "pairing has a negative shape: -1 sets of 3 pairs"},
      {[](Call& c) { c.pair_by_index(); c.p.pairing.pairs = -3; }, "pairing has a negative shape: 2 sets of -3 pairs"},
      {[](Call& c) { c.pair_by_index(); c.p.pairing.sets = kMany; }, "pairing has 8589934592 sets, more than 2147483647"},
      {[](Call& c) { c.pair_by_index(); c.p.pairing = {Kind::kIndexed, {}, 1 << 30, kMany}; }, "pairing has 1073741824 sets of 8589934592 pairs, which is more than 64 bits can count"},
      {[](Call& c) { c.pair_by_index(); c.p.pred.rows = c.p.target.rows = {}; }, "pred.rows.dtype and target.rows.dtype are not set; an indexed pairing needs one of them"},
      {[](Call& c) { c.pair_by_index(); c.p.pred.rows = {}; c.p.pred.slots = 2; }, "pred has 2 images of 2 boxes; without pred.rows it must have one for each of 2 sets of 3 pairs"},
      {[](Call& c) { c.pair_by_index(); c.p.target.rows = {}; c.p.target.images = 1; }, "target has 1 images of 3 boxes; without target.rows it must have one for each of 2 sets of 3 pairs"},
      // --- numbers
      {[](Call& c) { c.p.eps = -0.5; }, "eps is -0.5" + finite},
      {[](Call& c) { c.p.eps = kNan; }, "eps is nan" + finite},
      {[](Call& c) { c.p.eps = 1e300; }, "eps is 1e+300" + finite},
      {[](Call& c) { c.p.normalizer = {c.zeros, DType::kF32}; c.p.reduction = Reduction::kSum; }, "normalizer needs reduction 'mean', which it redefines"},
      {[](Call& c) { c.p.normalizer_stride = -1; }, "normalizer_stride is -1; it must be 0 or 1"},
      {[](Call& c) { c.p.normalizer_stride = 2; }, "normalizer_stride is 2; it must be 0 or 1"},
  });
}

TEST_CASE("what is not served is refused by all that are given it") {
  require_problems_refused<Unsupported>({
      {[](Call& c) { c.p.pred.dtype = DType::kU8; }, "pred is uint8" + kNotFloating},
      {[](Call& c) { c.p.pred.dtype = kNoDType; }, "pred is 77" + kNotFloating},
      {[](Call& c) { c.p.target.dtype = kNoDType; }, "target.dtype is 77" + kNoElements},
      {[](Call& c) { c.p.target.dtype = DType::kNone; }, "target.dtype is none" + kNoElements},
      {[](Call& c) { c.p.weight = {nullptr, kNoDType}; }, "weight is 77" + kNotFloating},
      {[](Call& c) { c.p.normalizer = {c.zeros, DType::kF16}; }, "normalizer is float16" + kNotNormalizer},
      {[](Call& c) { c.p.normalizer = {c.zeros, DType::kI16}; }, "normalizer is int16" + kNotNormalizer},
      {[](Call& c) { c.pair(Kind::kLengths, {c.zeros, DType::kF32}); }, "lengths is float32" + kNotIndices},
      {[](Call& c) { c.pair(Kind::kMask, {c.zeros, DType::kI32}); }, "mask is int32; it must be uint8"},
      {[](Call& c) { c.pair(Kind::kOffsets, {c.zeros, DType::kU8}); }, "offsets is uint8" + kNotIndices},
      {[](Call& c) { c.pair_by_index(); c.p.pairing.pairs = 0; c.p.pred.rows.dtype = kNoDType; }, "pred.rows is 77" + kNotIndices},
      {[](Call& c) { c.pair_by_index(); c.p.target.rows.dtype = DType::kF32; }, "target.rows is float32" + kNotIndices},
      {[](Call& c) { c.implementation.box_loss.losses = {}; }, "cpu/native does not serve the loss 'giou', only none"},
      {[](Call& c) { c.implementation.box_loss.pairings = {Kind::kMask}; }, "cpu/native does not serve the pairing dense"},
      {[](Call& c) { c.implementation.box_loss.backward = nullptr; }, "cpu/native does not serve box_loss"},
      {[](Call& c) { c.implementation.box_loss = {}; }, "cpu/native does not serve box_loss"},
  });
}

const Rows kNullArrays = {
    {[](Call& c) { c.p.weight.dtype = DType::kF32; }, "weight.data is null; where weight" + kNull},
    {[](Call& c) { c.p.normalizer.dtype = DType::kF32; }, "normalizer.data is null; where normalizer" + kNull},
    {[](Call& c) { c.pair_by_index(); c.p.pred.rows.data = nullptr; }, "pred.rows.data is null; where pred.rows" + kNull},
    {[](Call& c) { c.pair_by_index(); c.p.target.rows.data = nullptr; }, "target.rows.data is null; where target.rows" + kNull},
    {[](Call& c) { c.pair(Kind::kLengths, {nullptr, DType::kI32}); }, "lengths.data is null; where lengths" + kNull},
    {[](Call& c) { c.pair(Kind::kMask, {nullptr, DType::kU8}); }, "mask.data is null; where mask" + kNull},
    {[](Call& c) { c.pair(Kind::kOffsets, {nullptr, DType::kI32}); }, "offsets.data is null; where offsets" + kNull},
};

TEST_CASE("pointers that are wrong are refused by both passes") {
  require_runs_refused(kNullArrays);
  require_runs_refused({
      {[](Call& c) { c.execution.parallel_for = {}; }, "parallel_for is empty; it must run tasks, as boxloss::parallel_for does"},
      {[](Call& c) { c.p.pred.data = nullptr; }, "pred.data is null"},
      {[](Call& c) { c.p.target.data = nullptr; }, "target.data is null"},
      {[](Call& c) { c.p.weight.data = c.zeros; }, "weight.dtype is not set; it must be, where weight.data is"},
      {[](Call& c) { c.pair(Kind::kDense, {c.zeros, DType::kNone}); }, "pairing.data.dtype is not set; it must be, where pairing.data.data is"},
      {[](Call& c) { shift(c.p.pred.data); }, "pred" + kOffFour + "float32"},
      {[](Call& c) { shift(c.p.target.data); c.p.target.dtype = DType::kI16; }, "target does not lie on a multiple of the 2 bytes of a int16"},
      {[](Call& c) { c.p.weight = {c.zeros, DType::kF32}; shift(c.p.weight.data); }, "weight" + kOffFour + "float32"},
  });
}

const char* const kUnlikeFormats = "l1 is of values in one format, but pred is cxcywh and target xyxy";

TEST_CASE("forward checks its outputs and its workspace") {
  const std::string needed = std::to_string(loss_workspace_bytes(implementation("cpu/native"), Call().p));
  require_refused<InvalidArgument>(Rows{
      {[](Call& c) { c.outputs.loss = nullptr; }, "outputs.loss is null"},
      {[](Call& c) { c.outputs.scale = nullptr; }, "outputs.scale is null"},
      {[](Call& c) { shift(c.outputs.loss); }, "outputs.loss" + kOffFour + "float32"},
      {[](Call& c) { shift(c.outputs.scale); }, "outputs.scale" + kOffFour + "float32"},
      {[](Call& c) { c.outputs.l1 = c.output(2); shift(c.outputs.l1); }, "outputs.l1" + kOffFour + "float32"},
      {[](Call& c) { c.outputs.iou = c.output(2); shift(c.outputs.iou); }, "outputs.iou" + kOffFour + "float32"},
      {[](Call& c) { c.outputs.l1 = c.output(2); c.p.pred.format = BoxFormat::kCxcywh; }, kUnlikeFormats},
      {[](Call& c) { c.execution.workspace_bytes = 1; }, "workspace has 1 bytes; this problem needs " + needed},
      {[](Call& c) { c.execution.workspace = nullptr; }, "workspace is null; this problem needs " + needed + " bytes"},
      {[](Call& c) { c.execution.workspace = c.memory.data() + 1; }, "workspace does not lie on a multiple of 16 bytes"},
  }, &Call::forward);
  require_refused<Unsupported>(Rows{
      {[](Call& c) { c.outputs.l1 = c.output(2); c.implementation.box_loss.extras = {}; }, "cpu/native does not serve the output l1"},
      {[](Call& c) { c.outputs.iou = c.output(2); c.implementation.box_loss.extras = {}; }, "cpu/native does not serve the output iou"},
  }, &Call::forward);
}

TEST_CASE("backward checks its inputs and its outputs") {
  const std::string gaps = " is set, but the boxes have gaps or overlap: their strides are ";
  const std::string pred = "gradients.keeps_pred_strides", target = "gradients.keeps_target_strides";
  require_refused<InvalidArgument>(Rows{
      {[](Call& c) { c.grads.loss.data = nullptr; }, "grads.loss.data and grads.l1.data are null"},
      {[](Call& c) { c.scale = nullptr; }, "scale is null"},
      {[](Call& c) { c.p.reduction = Reduction::kNone; c.grads.loss.image_stride = kUnsetStride; }, "grads.loss.image_stride is not set; it must lead from each image to the next"},
      {[](Call& c) { c.p.reduction = Reduction::kNone; c.grads.loss.slot_stride = kUnsetStride; }, "grads.loss.slot_stride is not set; it must lead from each slot to the next"},
      {[](Call& c) { c.gradients.weight = c.output(2); }, "gradients.weight is wanted, but the problem has no weight"},
      {[](Call& c) { shift(c.grads.loss.data); }, "grads.loss" + kOffFour + "float32"},
      {[](Call& c) { c.grads.l1.data = c.zeros; shift(c.grads.l1.data); }, "grads.l1" + kOffFour + "float32"},
      {[](Call& c) { c.grads.l1.data = c.zeros; c.p.pred.format = BoxFormat::kCxcywh; }, kUnlikeFormats},
      {[](Call& c) { shift(c.scale); }, "scale" + kOffFour + "float32"},
      {[](Call& c) { c.gradients.pred = c.output(2); shift(c.gradients.pred); }, "gradients.pred" + kOffFour + "float32"},
      {[](Call& c) { c.gradients.target = c.output(2); shift(c.gradients.target); }, "gradients.target" + kOffFour + "float32"},
      {[](Call& c) { c.p.weight = {c.zeros, DType::kF32}; c.gradients.weight = c.output(2); shift(c.gradients.weight); }, "gradients.weight" + kOffFour + "float32"},
      {[](Call& c) { c.keep_strides(13, 4, 1); }, pred + gaps + "13 by image, 4 by slot, 1 by coordinate"},
      {[](Call& c) { c.keep_strides(0, 1, 3); }, pred + gaps + "0 by image, 1 by slot, 3 by coordinate"},
      {[](Call& c) { c.keep_strides(12, 1, 4); }, pred + gaps + "12 by image, 1 by slot, 4 by coordinate"},
      {[](Call& c) { c.keep_strides(12, 1, 1); }, pred + gaps + "12 by image, 1 by slot, 1 by coordinate"},
      {[](Call& c) { c.p.target.slot_stride = 0; c.gradients.keeps_target_strides = true; }, target + gaps + "12 by image, 0 by slot, 1 by coordinate"},
      {[](Call& c) { c.pair_by_index(); c.gradients.keeps_pred_strides = true; }, pred + " is set, but gradients of pairs by index are contiguous"},
  }, &Call::backward);
  require_refused<Unsupported>(Rows{
      {[](Call& c) { c.p.target.dtype = DType::kU8; c.gradients.target = c.output(2); }, "target is uint8, which has no gradient"},
      {[](Call& c) { c.grads.l1.data = c.zeros; c.implementation.box_loss.extras = {}; }, "cpu/native does not serve the output l1"},
  }, &Call::backward);
}
// clang-format on

TEST_CASE("a device that has no name is refused") {
  Call call;
  call.p.device = static_cast<Device>(200);  // others may be named by then
  REQUIRE_THROWS_MATCHES(call.forward(), InvalidArgument,
                         MessageMatches(StartsWith("device is 200; it must be one of cpu, cuda")));
}

TEST_CASE("arrays that are given may be null where nothing is read") {
  for (const auto& [spoil, text] : kNullArrays) {
    INFO(text);
    require_passes_ok({[spoil = spoil](Call& c) {
      spoil(c);
      c.be_empty();
    }});
  }
}

TEST_CASE("options and rows are checked before there are sizes") {
  LossProblem p;
  p.eps_mode = kNoEpsMode;
  REQUIRE_THROWS_AS(check_options(p), InvalidArgument);
  for (const Kind kind : {Kind::kDense, Kind::kOffsets, Kind::kIndexed}) {
    p.pairing.kind = kind;
    REQUIRE_THROWS_AS(loss_rows(p), InvalidArgument);
  }
  Call call;
  call.p.pred.format = BoxFormat::kCxcywh;
  REQUIRE_THROWS_MATCHES(check_options(call.p, {Extra::kL1}), InvalidArgument,
                         Message(kUnlikeFormats));
  REQUIRE_NOTHROW(check_options(call.p, {Extra::kIou}));
}

/// The 16-bit gradient of indexed boxes on the elements, but not on the boxes.
TEST_CASE("gradients that threads add to must lie on whole boxes") {
  for (const int elements : {1, 2, 3}) {
    const auto behind = [=](Call& c) {
      c.pair_by_index();
      c.p.pred.dtype = DType::kBF16;
      c.p.target.dtype = DType::kF16;
      return reinterpret_cast<std::uint16_t*>(c.output(2)) + elements;
    };
    require_refused<InvalidArgument>(Rows{{[=](Call& c) { c.gradients.pred = behind(c); },
                                           "gradients.pred" + kOffEight + "bfloat16 box"},
                                          {[=](Call& c) { c.gradients.target = behind(c); },
                                           "gradients.target" + kOffEight + "float16 box"}},
                                     &Call::backward);
    Call own_rows;  // those without an index are not added to
    own_rows.gradients.pred = behind(own_rows);
    own_rows.p.pred.rows = {};
    REQUIRE_NOTHROW(own_rows.backward());
  }
  Call floats;  // which lie on their elements
  floats.pair_by_index();
  floats.p.pred.slots = 1;
  floats.gradients.pred = floats.output(2) + 1;
  REQUIRE_NOTHROW(floats.backward());
}

TEST_CASE("gradients of boxes without gaps or overlaps keep strides") {
  const auto require_kept = [](auto... strides_and_sizes) {
    Call call;
    call.keep_strides(strides_and_sizes...);
    call.gradients.pred = call.output(2);
    REQUIRE_NOTHROW(call.backward());
  };
  for (const auto& [image, slot, coordinate] :
       {std::array{12, 4, 1}, {12, 1, 3}, {3, 1, 6}, {4, 8, 1}, {1, 2, 6}, {1, 8, 2}}) {
    require_kept(image, slot, coordinate);
  }
  // To the only one of its kind, a stride never leads.
  for (const std::int64_t any : {0, 1, 4, 1000}) {
    require_kept(any, 1, 3, 1, 3);
    require_kept(4, any, 1, 2, 1);
    require_kept(any, any, 1, 1, 1);
  }
}

TEMPLATE_TEST_CASE("float64 boxes of either kind are computed with in float64", "", LossProblem,
                   CostProblem) {
  const auto compute = [](DType pred, DType target) {
    TestType p;
    p.pred.dtype = pred;
    p.target.dtype = target;
    return compute_dtype(p);
  };
  REQUIRE(compute(DType::kF32, DType::kI64) == DType::kF32);
  REQUIRE(compute(DType::kF32, DType::kF64) == DType::kF64);
  REQUIRE(compute(DType::kF64, DType::kF32) == DType::kF64);
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

TEST_CASE("of a problem that was checked only pointers are looked at") {
  Call call;
  call.execution.is_checked = true;
  call.p.eps = -1;
  REQUIRE_NOTHROW(call.forward());
  REQUIRE_NOTHROW(call.backward());
  call.p.pred.data = nullptr;
  REQUIRE_THROWS_MATCHES(call.forward(), InvalidArgument, Message("pred.data is null"));
  REQUIRE_THROWS_MATCHES(call.backward(), InvalidArgument, Message("pred.data is null"));
}

/// Which optional arrays the function of a backend last found.
std::vector<bool> found;

TEST_CASE("an implementation knows what is given by its pointer, before there are pointers too") {
  Call call;
  call.implementation.box_loss.workspace_bytes = [](const LossProblem& p) {
    found = {p.pred.rows.data != nullptr, p.target.rows.data != nullptr,
             p.pairing.data.data != nullptr, p.weight.data != nullptr,
             p.normalizer.data != nullptr};
    return std::size_t{0};
  };
  const auto require_found = [&](const std::vector<bool>& expected) {
    found = {};
    call.ask_for_workspace();
    REQUIRE(found == expected);
  };
  require_found({false, false, false, false, false});
  call.p.weight.data = call.zeros;  // without a dtype
  require_found({false, false, false, false, false});
  call.p.weight = {nullptr, DType::kF32};
  require_found({false, false, false, true, false});
  call.p.normalizer.dtype = DType::kF64;
  call.p.pairing = {Kind::kMask, {nullptr, DType::kU8}};
  require_found({false, false, true, true, true});
  call.p.pairing = {Kind::kIndexed, {}, 2, 3};
  call.p.pred.rows.dtype = DType::kI64;
  require_found({true, false, false, true, true});
}

// Members that an initializer leaves out are no warning, which users may have made an error.
[[maybe_unused]] const LossProblem kLossProblem{Device::kCpu};
[[maybe_unused]] const CostProblem kCostProblem{Device::kCpu};

template <class... Errors>
constexpr bool kAreErrors = (std::is_base_of_v<Error, Errors> && ...);
static_assert(kAreErrors<InvalidArgument, Unsupported, NotCompiled, NoDevice, DeviceError>);

}  // namespace
}  // namespace boxloss
