// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

/// What the losses of logits refuse, and what they do not.
namespace boxloss {
namespace {

// clang-format off
/// By both losses.
template <class Call>
void require_refused_of_logits() {
  require_workspace_checked<Call>();
  for (const auto run : {&Call::run, &Call::run_backward}) {
    require_shared_refused<Call>(run);
    require_refused<InvalidArgument>(Refusals<Call>{
        {[](Call& c) { c.p.reduction = static_cast<Reduction>(3); }, "reduction is 3; it must be one of none, sum, mean"},
        {[](Call& c) { c.p.normalizer = {c.zeros, DType::kF64}; c.p.reduction = Reduction::kSum; }, "normalizer needs reduction 'mean', which it redefines"},
        {[](Call& c) { c.p.normalizer_stride = 2; }, "normalizer_stride is 2; it must be 0 or 1"},
        {[](Call& c) { c.p.normalizer.dtype = DType::kF64; }, "normalizer.data is null; where normalizer" + kNull},
        {[](Call& c) { c.p.sets = -1; }, "sets is -1" + kNotNegative},
        {[](Call& c) { c.p.images = kUnsetSize; }, "images" + kNotSet + "images"},
        {[](Call& c) { c.p.queries = kUnsetSize; }, "queries" + kNotSet + "queries of each image"},
        {[](Call& c) { c.p.logits.set_stride = kUnsetStride; }, "logits.set_stride is not set; it must lead from each set to the next"},
        {[](Call& c) { c.p.logits.query_stride = kUnsetStride; }, "logits.query_stride is not set; it must lead from each query to the next"},
        {[](Call& c) { c.p.logits.set_stride = -12; }, "logits has a negative stride, -12"},
        {[](Call& c) { c.p.logits.image_stride = -3; }, "logits has a negative stride, -3"},
        {[](Call& c) { c.p.logits.query_stride = -4; }, "logits has a negative stride, -4"},
        {[](Call& c) { shift(c.p.logits.data); }, "logits" + kOffFour + "float32"},
        {[](Call& c) { c.p.target_index = {}; }, "target_index" + kNoDTypeSet + "(sets, images, queries) integers"},
        {[](Call& c) { c.p.target_index.data = nullptr; }, "target_index.data is null; where target_index" + kNull},
        {[](Call& c) { c.p.quality.data = nullptr; }, "quality.data is null; where quality" + kNull},
    }, run);
    require_refused<Unsupported>(Refusals<Call>{
        {[](Call& c) { c.p.logits.dtype = DType::kI32; }, "logits is int32" + kNotFloating},
        {[](Call& c) { c.p.target_index.dtype = DType::kF32; }, "target_index is float32" + kNotIndices},
        {[](Call& c) { c.p.quality.dtype = DType::kI32; }, "quality is int32" + kNotFloating},
        {[](Call& c) { c.p.normalizer = {c.zeros, DType::kF16}; }, "normalizer is float16" + kNotNormalizer},
    }, run);
  }
  require_refused<InvalidArgument>(Refusals<Call>{
      {[](Call& c) { c.outputs.loss = nullptr; }, "outputs.loss is null"},
      {[](Call& c) { c.outputs.scale = nullptr; }, "outputs.scale is null"},
      {[](Call& c) { shift(c.outputs.loss); }, "outputs.loss" + kOffFour + "float32"},
      {[](Call& c) { shift(c.outputs.scale); }, "outputs.scale" + kOffFour + "float32"},
  });
  require_refused<InvalidArgument>(Refusals<Call>{
      {[](Call& c) { c.p.grad = nullptr; }, "grad is null"},
      {[](Call& c) { c.p.scale = nullptr; }, "scale is null"},
      {[](Call& c) { c.gradients.logits = nullptr; }, "outputs.logits is null"},
      {[](Call& c) { shift(c.p.grad); }, "grad" + kOffFour + "float32"},
      {[](Call& c) { shift(c.p.scale); }, "scale" + kOffFour + "float32"},
      {[](Call& c) { shift(c.gradients.logits); }, "outputs.logits" + kOffFour + "float32"},
  }, &Call::run_backward);
}
// clang-format on

// --- Classes

/// Two sets of one image of three queries with four logits each, and five boxes: right, until a
/// test spoils it.
struct ClassCall : Prepared {
  ClassLossGradProblem p;
  ClassLossOutputs outputs = {output(0), output(1)};
  ClassLossGradOutputs gradients = {output(2)};

  ClassCall() {
    p.mode = ClassLoss::kVarifocal;
    p.sets = 2;
    p.images = 1;
    p.queries = 3;
    p.classes = 4;
    p.targets = 5;
    p.logits = {zeros, DType::kF32, 12, 12, 4, 1};
    p.target_index = {zeros, DType::kI32};
    p.labels = {zeros, DType::kI64};
    p.quality = {zeros, DType::kF32};
    p.grad = p.scale = zeros;
  }

  /// A mode that has no quality.
  void set_mode(ClassLoss mode) {
    p.mode = mode;
    p.quality = {};
  }
  void forget_arrays() {
    p.logits.data = p.target_index.data = p.labels.data = p.quality.data = nullptr;
  }
  std::size_t workspace_bytes() const { return class_loss_workspace_bytes(implementation, p); }
  void run() { class_loss(implementation, p, outputs, execution); }
  void run_backward() { class_loss_backward(implementation, p, gradients, execution); }
};

// clang-format off
TEST_CASE("a class loss that is wrong is refused") {
  const std::string modes = "; it must be one of focal, varifocal, mal, ia_bce, bce, softmax", finite = "; it must be finite";
  const Refusals<ClassCall> problems = {
      {[](ClassCall& c) { c.p.mode = {}; }, "mode is unset" + modes},
      {[](ClassCall& c) { c.p.mode = static_cast<ClassLoss>(7); }, "mode is 7" + modes},
      {[](ClassCall& c) { c.p.query_quality = {c.zeros, DType::kF32}; }, "give quality or query_quality, not both"},
      {[](ClassCall& c) { c.p.mode = ClassLoss::kFocal; }, "mode 'focal' has no quality"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax); c.p.query_quality = {c.zeros, DType::kF32}; }, "mode 'softmax' has no quality"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kVarifocal); }, "mode 'varifocal' needs quality or query_quality"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kMal); }, "mode 'mal' needs quality or query_quality"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kIaBce); }, "mode 'ia_bce' needs quality or query_quality"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kBce); c.p.alpha = 0.5; }, "alpha is 0.5; mode 'bce' has none"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax); c.p.gamma = 2; }, "gamma is 2; mode 'softmax' has none"},
      {[](ClassCall& c) { c.p.alpha = kNan; }, "alpha is nan" + finite},
      {[](ClassCall& c) { c.p.gamma = 1e39; }, "gamma is 1e+39" + finite},  // as a float32
      {[](ClassCall& c) { c.p.gamma = -0.5; }, "gamma is -0.5" + kNotNegative},
      {[](ClassCall& c) { c.p.mode = ClassLoss::kIaBce; c.p.alpha = 1.5; }, "alpha is 1.5; mode 'ia_bce' has powers of alpha and 1 - alpha: it must be from 0 to 1"},
      {[](ClassCall& c) { c.p.mode = ClassLoss::kIaBce; c.p.alpha = -0.5; }, "alpha is -0.5; mode 'ia_bce' has powers of alpha and 1 - alpha: it must be from 0 to 1"},
      {[](ClassCall& c) { c.p.no_object_weight = 0.1; }, "no_object_weight is 0.1; only mode 'softmax' has one"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax); c.p.no_object_weight = kInfinity; }, "no_object_weight is inf" + finite},
      {[](ClassCall& c) { c.p.classes = -2; }, "classes is -2" + kNotNegative},
      {[](ClassCall& c) { c.p.targets = kUnsetSize; }, "targets" + kNotSet + "labels"},
      {[](ClassCall& c) { c.p.images = c.p.queries = kMany; }, "logits has shape (2, 8589934592, 8589934592, 4), which is more than 64 bits can count"},
      {[](ClassCall& c) { c.p.logits.class_stride = -1; }, "logits has a negative stride, -1"},
      {[](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax); c.p.classes = 0; }, "logits has no classes; mode 'softmax' needs that of queries without a box"},
      {[](ClassCall& c) { c.p.labels = {}; }, "labels" + kNoDTypeSet + "(targets) integers"},
      {[](ClassCall& c) { c.p.logits.data = nullptr; }, "logits.data is null"},
      {[](ClassCall& c) { c.p.labels.data = nullptr; }, "labels.data is null; where labels" + kNull},
      {[](ClassCall& c) { c.p.quality = {}; c.p.query_quality.dtype = DType::kF32; }, "query_quality.data is null; where query_quality" + kNull},
      {[](ClassCall& c) { c.p.weight.dtype = DType::kF32; }, "weight.data is null; where weight" + kNull},
      {[](ClassCall& c) { c.p.weight.data = c.zeros; }, "weight.dtype is not set; it must be, where weight.data is"},
  };
  const Refusals<ClassCall> dtypes = {
      {[](ClassCall& c) { c.p.labels.dtype = DType::kU8; }, "labels is uint8" + kNotIndices},
      {[](ClassCall& c) { c.p.quality = {}; c.p.query_quality = {c.zeros, DType::kI64}; }, "query_quality is int64" + kNotFloating},
      {[](ClassCall& c) { c.p.weight = {c.zeros, kNoDType}; }, "weight is 77" + kNotFloating},
  };
  require_refused_of_logits<ClassCall>();
  for (const auto run : {&ClassCall::run, &ClassCall::run_backward}) {
    require_refused<InvalidArgument>(problems, run);
    require_refused<Unsupported>(dtypes, run);
  }
  require_refused<Unsupported>(Refusals<ClassCall>{{[](ClassCall& c) { c.implementation.class_loss = {}; }, "cpu/native does not serve class_loss"}});
  require_refused<Unsupported>(Refusals<ClassCall>{{[](ClassCall& c) { c.implementation.class_loss_backward = {}; }, "cpu/native does not serve class_loss_backward"}}, &ClassCall::run_backward);
}

TEST_CASE("a class loss without fault is not refused") {
  const Changes<ClassCall> changes = {
      [](ClassCall&) {},
      [](ClassCall& c) { c.set_mode(ClassLoss::kBce); },
      [](ClassCall& c) { c.set_mode(ClassLoss::kFocal); c.p.alpha = -1; c.p.gamma = 0; },
      [](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax); c.p.no_object_weight = 0; },
      [](ClassCall& c) { c.p.mode = ClassLoss::kIaBce; c.p.alpha = 1; },
      [](ClassCall& c) { c.p.normalizer = {c.zeros, DType::kF64}; c.p.normalizer_stride = 1; },
      // Of no boxes neither labels nor their quality are read.
      [](ClassCall& c) { c.p.targets = 0; c.p.labels = {}; c.p.quality.data = nullptr; },
  };
  require_ok(changes);
  require_ok(changes, &ClassCall::run_backward);
  require_nothing_needed<ClassCall>({
      [](ClassCall& c) { c.p.images = 0; c.p.target_index = c.p.labels = {}; },
      [](ClassCall& c) { c.p.queries = 0; c.p.target_index = c.p.labels = {}; },
      [](ClassCall& c) { c.set_mode(ClassLoss::kSoftmax); c.p.queries = c.p.classes = 0; },
  });
}
// clang-format on

TEST_CASE("a class loss without queries has losses of its sets still, and no gradient") {
  for (const char* const name : {"cpu/native", "cpu/reference"}) {
    for (const auto size : {&ClassLossProblem::images, &ClassLossProblem::queries}) {
      INFO(name);
      ClassCall forward, backward;
      forward.implementation = backward.implementation = implementation(name);
      forward.p.*size = backward.p.*size = 0;
      forward.run();
      REQUIRE(forward.output(0)[1] == 0);
      REQUIRE(forward.output(1)[1] == 1);
      backward.execution = {};
      REQUIRE(class_loss_backward_workspace_bytes(backward.implementation, backward.p) == 0);
      REQUIRE_NOTHROW(backward.run_backward());
      REQUIRE(backward.is_untouched());
    }
  }
}

// --- Distributions

/// Two sets of one image of three queries with three bins, and five boxes: right, until a test
/// spoils it.
struct DistributionCall : Prepared {
  DistributionLossGradProblem p;
  DistributionLossOutputs outputs = {output(0), output(1)};
  DistributionLossGradOutputs gradients = {output(2)};

  DistributionCall() {
    p.mode = DistributionLoss::kFgl;
    p.sets = 2;
    p.images = 1;
    p.queries = 3;
    p.bins = 3;
    p.targets = 5;
    p.logits = {zeros, DType::kF32, 36, 36, 12};
    p.target_index = {zeros, DType::kI32};
    p.quality = p.reference = p.target = p.edges = {zeros, DType::kF32};
    p.grad = p.scale = zeros;
  }

  void set_ddf() {
    p.mode = DistributionLoss::kDdf;
    p.reference = p.target = p.edges = {};
    p.teacher = {zeros, DType::kF32, 0, 36, 12};
    p.confidence = {zeros, DType::kF32};
  }
  void forget_arrays() {
    p.logits.data = p.target_index.data = p.quality.data = nullptr;
    p.reference.data = p.target.data = p.edges.data = nullptr;
  }
  std::size_t workspace_bytes() const {
    return distribution_loss_workspace_bytes(implementation, p);
  }
  void run() { distribution_loss(implementation, p, outputs, execution); }
  void run_backward() { distribution_loss_backward(implementation, p, gradients, execution); }
};

// clang-format off
TEST_CASE("a loss of distributions that is wrong is refused") {
  const std::string modes = "; it must be one of fgl, ddf", positive = "; it must be positive and finite, and so must its square in float32";
  const Refusals<DistributionCall> problems = {
      {[](DistributionCall& c) { c.p.mode = {}; }, "mode is unset" + modes},
      {[](DistributionCall& c) { c.p.mode = static_cast<DistributionLoss>(3); }, "mode is 3" + modes},
      {[](DistributionCall& c) { c.p.reference = {}; }, "mode 'fgl' needs reference"},
      {[](DistributionCall& c) { c.p.target = {}; }, "mode 'fgl' needs target"},
      {[](DistributionCall& c) { c.p.edges = {}; }, "mode 'fgl' needs edges"},
      {[](DistributionCall& c) { c.p.teacher.dtype = DType::kF32; }, "mode 'fgl' has no teacher"},
      {[](DistributionCall& c) { c.p.confidence.dtype = DType::kF32; }, "mode 'fgl' has no confidence"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.teacher = {}; }, "mode 'ddf' needs teacher"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.confidence = {}; }, "mode 'ddf' needs confidence"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.reference.dtype = DType::kF32; }, "mode 'ddf' has no reference"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.target.dtype = DType::kF32; }, "mode 'ddf' has no target"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.edges.dtype = DType::kF32; }, "mode 'ddf' has no edges"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.normalizer.dtype = DType::kF64; }, "normalizer is given; mode 'ddf' has a mean of its own"},
      {[](DistributionCall& c) { c.p.reg_scale = 0; }, "reg_scale is 0" + positive},
      {[](DistributionCall& c) { c.p.reg_scale = -4; }, "reg_scale is -4" + positive},
      {[](DistributionCall& c) { c.p.reg_scale = kNan; }, "reg_scale is nan" + positive},
      {[](DistributionCall& c) { c.p.temperature = 1e30; }, "temperature is 1e+30" + positive},
      {[](DistributionCall& c) { c.p.temperature = 1e-30; }, "temperature is 1e-30" + positive},
      {[](DistributionCall& c) { c.p.temperature = 3; }, "temperature is 3; only mode 'ddf' has one"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.reg_scale = 3; }, "reg_scale is 3; only mode 'fgl' has one"},
      {[](DistributionCall& c) { c.p.bins = 1; }, "bins is 1; mode 'fgl' needs at least 2, to lie between"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.bins = 0; }, "bins is 0; it must be at least 1"},
      {[](DistributionCall& c) { c.p.targets = kUnsetSize; }, "targets" + kNotSet + "boxes of target"},
      {[](DistributionCall& c) { c.p.targets = kMost64; }, "targets is 9223372036854775807, more than 64 bits can count"},
      {[](DistributionCall& c) { c.p.images = c.p.queries = kMany; }, "logits has shape (2, 8589934592, 8589934592, 4 * 3), which is more than 64 bits can count"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.teacher.query_stride = kUnsetStride; }, "teacher.query_stride is not set; it must lead from each query to the next"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.teacher.set_stride = -36; }, "teacher has a negative stride, -36"},
      {[](DistributionCall& c) { c.p.logits.data = nullptr; }, "logits.data is null; where logits" + kNull},
      {[](DistributionCall& c) { c.p.reference.data = nullptr; }, "reference.data is null; where reference" + kNull},
      {[](DistributionCall& c) { c.p.target.data = nullptr; }, "target.data is null; where target" + kNull},
      {[](DistributionCall& c) { c.p.edges.data = nullptr; }, "edges.data is null; where edges" + kNull},
      {[](DistributionCall& c) { c.set_ddf(); c.p.teacher.data = nullptr; }, "teacher.data is null; where teacher" + kNull},
      {[](DistributionCall& c) { c.set_ddf(); c.p.confidence.data = nullptr; }, "confidence.data is null; where confidence" + kNull},
  };
  const Refusals<DistributionCall> dtypes = {
      {[](DistributionCall& c) { c.p.edges.dtype = DType::kI64; }, "edges is int64" + kNotFloating},
      {[](DistributionCall& c) { c.set_ddf(); c.p.teacher.dtype = DType::kU8; }, "teacher is uint8" + kNotFloating},
  };
  require_refused_of_logits<DistributionCall>();
  for (const auto run : {&DistributionCall::run, &DistributionCall::run_backward}) {
    require_refused<InvalidArgument>(problems, run);
    require_refused<Unsupported>(dtypes, run);
  }
  require_refused<Unsupported>(Refusals<DistributionCall>{{[](DistributionCall& c) { c.implementation.distribution_loss = {}; }, "cpu/native does not serve distribution_loss"}});
  require_refused<Unsupported>(Refusals<DistributionCall>{{[](DistributionCall& c) { c.implementation.distribution_loss_backward = {}; }, "cpu/native does not serve distribution_loss_backward"}}, &DistributionCall::run_backward);
}

TEST_CASE("a loss of distributions without fault is not refused") {
  const Changes<DistributionCall> changes = {
      [](DistributionCall&) {},
      [](DistributionCall& c) { c.set_ddf(); },
      [](DistributionCall& c) { c.p.quality = {}; },
  };
  require_ok(changes);
  require_ok(changes, &DistributionCall::run_backward);
  require_nothing_needed<DistributionCall>({[](DistributionCall& c) { c.p.queries = 0; }});
}
// clang-format on

}  // namespace
}  // namespace boxloss
