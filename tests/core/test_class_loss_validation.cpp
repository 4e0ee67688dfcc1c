// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

namespace boxloss {
namespace {

/// Two sets of one image of three queries with four logits each, and five boxes: right, until a
/// test spoils it.
struct ClassCall {
  alignas(8) float logits[2 * 3 * 4] = {};
  alignas(8) std::int32_t target_index[2 * 3] = {0, 1, -1, 4, -1, -2};
  alignas(8) std::int64_t labels[5] = {0, 1, 2, 3, 0};
  alignas(8) float quality[5] = {1, 1, 1, 1, 1}, query_quality[2 * 3] = {}, weight[4] = {};
  alignas(8) double normalizer[2] = {3, 3};
  alignas(8) float incoming[2] = {1, 1}, scales[2] = {1, 1};
  Output<float, 2> loss, scale;
  Output<float, 2 * 3 * 4> gradient;

  ClassLossGradProblem p;
  ClassLossOutputs outputs = {loss.values, scale.values};
  ClassLossGradOutputs gradients = {gradient.values};
  Workspace workspace;
  Implementation implementation = boxloss::implementation("cpu/native");

  ClassCall() {
    p.mode = ClassLoss::kVarifocal;
    p.sets = 2;
    p.images = 1;
    p.queries = 3;
    p.classes = 4;
    p.targets = 5;
    p.logits = {logits, DType::kF32, 12, 12, 4, 1};
    p.target_index = {target_index, DType::kI32};
    p.labels = {labels, DType::kI64};
    p.quality = {quality, DType::kF32};
    p.grad = incoming;
    p.scale = scales;
  }

  /// A mode that has no quality.
  void set_mode(ClassLoss mode) {
    p.mode = mode;
    p.quality = {};
  }

  void run() { class_loss(implementation, p, outputs, workspace.execution); }
  void run_backward() { class_loss_backward(implementation, p, gradients, workspace.execution); }
  bool is_untouched() const {
    return loss.is_untouched() && scale.is_untouched() && gradient.is_untouched();
  }
};

using Rows = Refusals<ClassCall>;

// clang-format off
const Rows& wrong_problems() {
  static const std::string modes = "; it must be one of focal, varifocal, mal, ia_bce, bce, softmax", finite = "; it must be finite",
                           set_null = ".dtype is set it must not be", both = "give quality or query_quality, not both", negative = "; it must not be negative";
  static const Rows rows = {
      {[](ClassCall& c) { c.p.device = Device::kCuda; }, "the problem is on cuda, but cpu/native was asked to run it"},
      {[](ClassCall& c) { c.p.mode = {}; }, "mode is unset" + modes},
      {[](ClassCall& c) { c.p.mode = static_cast<ClassLoss>(7); }, "mode is 7" + modes},
      {[](ClassCall& c) { c.p.reduction = static_cast<Reduction>(3); }, "reduction is 3; it must be one of none, sum, mean"},
      {[](ClassCall& c) { c.p.query_quality = {c.query_quality, DType::kF32}; }, both},
      {[](ClassCall& c) { c.p.mode = ClassLoss::kFocal; }, "mode 'focal' has no quality"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax); c.p.query_quality = {c.query_quality, DType::kF32}; }, "mode 'softmax' has no quality"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kVarifocal); }, "mode 'varifocal' needs quality or query_quality"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kMal); }, "mode 'mal' needs quality or query_quality"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kIaBce); }, "mode 'ia_bce' needs quality or query_quality"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kBce); c.p.alpha = 0.5; }, "alpha is 0.5; mode 'bce' has none"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax); c.p.gamma = 2; }, "gamma is 2; mode 'softmax' has none"},
      {[](ClassCall& c) { c.p.alpha = kNan; }, "alpha is nan" + finite},
      {[](ClassCall& c) { c.p.gamma = 1e39; }, "gamma is 1e+39" + finite},  // as a float32
      {[](ClassCall& c) { c.p.gamma = -0.5; }, "gamma is -0.5" + negative},
      {[](ClassCall& c) { c.p.mode = ClassLoss::kIaBce; c.p.alpha = 1.5; }, "alpha is 1.5; mode 'ia_bce' has powers of alpha and 1 - alpha: it must be from 0 to 1"},
      {[](ClassCall& c) { c.p.mode = ClassLoss::kIaBce; c.p.alpha = -0.5; }, "alpha is -0.5; mode 'ia_bce' has powers of alpha and 1 - alpha: it must be from 0 to 1"},
      {[](ClassCall& c) { c.p.no_object_weight = 0.1; }, "no_object_weight is 0.1; only mode 'softmax' has one"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax); c.p.no_object_weight = kInfinity; }, "no_object_weight is inf" + finite},
      {[](ClassCall& c) { c.p.normalizer = {c.normalizer, DType::kF64}; c.p.reduction = Reduction::kSum; }, "normalizer needs reduction 'mean', which it redefines"},
      {[](ClassCall& c) { c.p.normalizer_stride = 2; }, "normalizer_stride is 2; it must be 0 or 1"},
      {[](ClassCall& c) { c.p.sets = -1; }, "sets is -1" + negative},
      {[](ClassCall& c) { c.p.images = kUnsetSize; }, "images is not set; it must be the number of images"},
      {[](ClassCall& c) { c.p.queries = kUnsetSize; }, "queries is not set; it must be the number of queries of each image"},
      {[](ClassCall& c) { c.p.classes = -2; }, "classes is -2" + negative},
      {[](ClassCall& c) { c.p.targets = kUnsetSize; }, "targets is not set; it must be the number of labels"},
      {[](ClassCall& c) { c.p.images = c.p.queries = kMany; }, "logits has shape (2, 8589934592, 8589934592, 4), which is more than 64 bits can count"},
      {[](ClassCall& c) { c.p.logits.set_stride = -12; }, "logits has a negative stride, -12"},
      {[](ClassCall& c) { c.p.logits.image_stride = -3; }, "logits has a negative stride, -3"},
      {[](ClassCall& c) { c.p.logits.query_stride = -4; }, "logits has a negative stride, -4"},
      {[](ClassCall& c) { c.p.logits.class_stride = -1; }, "logits has a negative stride, -1"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax); c.p.classes = 0; }, "logits has no classes; mode 'softmax' needs that of queries without a box"},
      {[](ClassCall& c) { c.p.target_index = {}; }, "target_index.dtype is not set; it must be that of (sets, images, queries) integers"},
      {[](ClassCall& c) { c.p.labels = {}; }, "labels.dtype is not set; it must be that of (targets) integers"},
      {[](ClassCall& c) { c.p.logits.data = nullptr; }, "logits.data is null"},
      {[](ClassCall& c) { shift(c.p.logits.data); }, "logits" + kOffFour + "float32"},
      {[](ClassCall& c) { c.p.target_index.data = nullptr; }, "target_index.data is null; where target_index" + set_null},
      {[](ClassCall& c) { c.p.labels.data = nullptr; }, "labels.data is null; where labels" + set_null},
      {[](ClassCall& c) { c.p.quality.data = nullptr; }, "quality.data is null; where quality" + set_null},
      {[](ClassCall& c) { c.p.quality = {}; c.p.query_quality.dtype = DType::kF32; }, "query_quality.data is null; where query_quality" + set_null},
      {[](ClassCall& c) { c.p.weight.dtype = DType::kF32; }, "weight.data is null; where weight" + set_null},
      {[](ClassCall& c) { c.p.weight.data = c.weight; }, "weight.dtype is not set; it must be, where weight.data is"},
      {[](ClassCall& c) { c.p.normalizer.dtype = DType::kF64; }, "normalizer.data is null; where normalizer" + set_null},
      {[](ClassCall& c) { c.workspace.execution.parallel_for = nullptr; }, "parallel_for is empty; it must run tasks, as boxloss::parallel_for does"},
  };
  return rows;
}

const Rows& wrong_dtypes() {
  static const Rows rows = {
      {[](ClassCall& c) { c.p.logits.dtype = DType::kI32; }, "logits is int32" + kNotFloating},
      {[](ClassCall& c) { c.p.target_index.dtype = DType::kF32; }, "target_index is float32" + kNotIndices},
      {[](ClassCall& c) { c.p.labels.dtype = DType::kU8; }, "labels is uint8" + kNotIndices},
      {[](ClassCall& c) { c.p.quality.dtype = DType::kI32; }, "quality is int32" + kNotFloating},
      {[](ClassCall& c) { c.p.quality = {}; c.p.query_quality = {c.query_quality, DType::kI64}; }, "query_quality is int64" + kNotFloating},
      {[](ClassCall& c) { c.p.weight = {c.weight, kNoDType}; }, "weight is 77" + kNotFloating},
      {[](ClassCall& c) { c.p.normalizer = {c.normalizer, DType::kF16}; }, "normalizer is float16; it must be float64, float32, int64 or int32"},
  };
  return rows;
}

TEST_CASE("a class loss that is wrong is refused") {
  for (const auto run : {&ClassCall::run, &ClassCall::run_backward}) {
    require_refused<InvalidArgument>(wrong_problems(), run);
    require_refused<Unsupported>(wrong_dtypes(), run);
  }
  require_refused<InvalidArgument>(Rows{
      {[](ClassCall& c) { c.outputs.loss = nullptr; }, "outputs.loss is null"},
      {[](ClassCall& c) { c.outputs.scale = nullptr; }, "outputs.scale is null"},
      {[](ClassCall& c) { shift(c.outputs.loss); }, "outputs.loss" + kOffFour + "float32"},
      {[](ClassCall& c) { shift(c.outputs.scale); }, "outputs.scale" + kOffFour + "float32"},
  });
  require_refused<InvalidArgument>(Rows{
      {[](ClassCall& c) { c.p.grad = nullptr; }, "grad is null"},
      {[](ClassCall& c) { c.p.scale = nullptr; }, "scale is null"},
      {[](ClassCall& c) { c.gradients.logits = nullptr; }, "outputs.logits is null"},
      {[](ClassCall& c) { shift(c.p.grad); }, "grad" + kOffFour + "float32"},
      {[](ClassCall& c) { shift(c.p.scale); }, "scale" + kOffFour + "float32"},
      {[](ClassCall& c) { shift(c.gradients.logits); }, "outputs.logits" + kOffFour + "float32"},
  }, &ClassCall::run_backward);
  require_refused<Unsupported>(Rows{
      {[](ClassCall& c) { c.implementation.class_loss = {}; }, "cpu/native does not serve class_loss"},
  });
  require_refused<Unsupported>(Rows{
      {[](ClassCall& c) { c.implementation.class_loss_backward = {}; }, "cpu/native does not serve class_loss_backward"},
  }, &ClassCall::run_backward);
}
// clang-format on

TEST_CASE("a class loss without fault is not refused") {
  const std::function<void(ClassCall&)> changes[] = {
      [](ClassCall&) {},
      [](ClassCall& c) { c.set_mode(ClassLoss::kBce); },
      [](ClassCall& c) { c.set_mode(ClassLoss::kFocal), c.p.alpha = -1, c.p.gamma = 0; },
      [](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax), c.p.no_object_weight = 0; },
      [](ClassCall& c) { c.p.mode = ClassLoss::kIaBce, c.p.alpha = 1; },
      [](ClassCall& c) { c.p.normalizer = {c.normalizer, DType::kF64}, c.p.normalizer_stride = 1; },
      // Of no boxes neither labels nor their quality are read.
      [](ClassCall& c) { c.p.targets = 0, c.p.labels = {}, c.p.quality.data = nullptr; },
  };
  for (const auto& change : changes) {
    require_ok<ClassCall>(change);
    ClassCall call;
    change(call);
    REQUIRE_NOTHROW(call.run_backward());
    REQUIRE_FALSE(call.gradient.is_untouched());
  }
}

TEST_CASE("a class loss' workspace is checked, and known before there are arrays") {
  ClassCall call;
  call.p.logits.data = call.p.target_index.data = call.p.labels.data = call.p.quality.data =
      nullptr;
  require_workspace_of<ClassCall>(class_loss_workspace_bytes(call.implementation, call.p));
  REQUIRE(class_loss_backward_workspace_bytes(call.implementation, call.p) == 0);
}

TEST_CASE("a class loss without queries needs neither arrays nor a workspace") {
  for (const char* const name : {"cpu/native", "cpu/reference"}) {
    for (const auto size : {&ClassLossProblem::images, &ClassLossProblem::queries}) {
      ClassCall call;
      INFO(name);
      call.implementation = implementation(name);
      call.p.*size = 0;
      call.p.logits.data = nullptr;
      call.p.target_index = call.p.labels = {};
      call.p.quality.data = nullptr;
      call.workspace.execution = {};
      REQUIRE(class_loss_workspace_bytes(call.implementation, call.p) == 0);
      REQUIRE_NOTHROW(call.run());
      REQUIRE(call.loss.values[1] == 0);  // sets have losses still
      REQUIRE(call.scale.values[1] == 1);
      REQUIRE_NOTHROW(call.run_backward());
      REQUIRE(call.gradient.is_untouched());
    }
  }
}

}  // namespace
}  // namespace boxloss
