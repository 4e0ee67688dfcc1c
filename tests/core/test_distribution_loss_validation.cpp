// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

namespace boxloss {
namespace {

/// Two sets of one image of three queries with three bins, and five boxes: right, until a test
/// spoils it.
struct DistributionCall {
  alignas(8) float logits[2 * 3 * 12] = {}, teacher[3 * 12] = {};
  alignas(8) std::int32_t target_index[2 * 3] = {0, 1, -1, 4, -1, -2};
  alignas(8) float quality[2 * 3] = {}, confidence[3] = {};
  alignas(8) float reference[2 * 3 * 4] = {}, target[5 * 4] = {}, edges[3] = {-1, 0, 1};
  alignas(8) double normalizer[2] = {3, 3};
  alignas(8) float incoming[2] = {1, 1}, scales[4] = {1, 1, 1, 1};
  Output<float, 2> loss;
  Output<float, 4> scale;
  Output<float, 2 * 3 * 12> gradient;

  DistributionLossGradProblem p;
  DistributionLossOutputs outputs = {loss.values, scale.values};
  DistributionLossGradOutputs gradients = {gradient.values};
  Workspace workspace;
  Implementation implementation = boxloss::implementation("cpu/native");

  DistributionCall() {
    p.mode = DistributionLoss::kFgl;
    p.sets = 2;
    p.images = 1;
    p.queries = 3;
    p.bins = 3;
    p.targets = 5;
    p.logits = {logits, DType::kF32, 36, 36, 12};
    p.target_index = {target_index, DType::kI32};
    p.quality = {quality, DType::kF32};
    p.reference = {reference, DType::kF32};
    p.target = {target, DType::kF32};
    p.edges = {edges, DType::kF32};
    p.grad = incoming;
    p.scale = scales;
  }

  void set_ddf() {
    p.mode = DistributionLoss::kDdf;
    p.reference = p.target = p.edges = {};
    p.teacher = {teacher, DType::kF32, 0, 36, 12};
    p.confidence = {confidence, DType::kF32};
  }

  void run() { distribution_loss(implementation, p, outputs, workspace.execution); }
  void run_backward() {
    distribution_loss_backward(implementation, p, gradients, workspace.execution);
  }
  bool is_untouched() const {
    return loss.is_untouched() && scale.is_untouched() && gradient.is_untouched();
  }
};

using Rows = Refusals<DistributionCall>;

// clang-format off
const Rows& wrong_problems() {
  static const std::string modes = "; it must be one of fgl, ddf", null = ".dtype is set it must not be", negative = "; it must not be negative",
                           positive = "; it must be positive and finite, and so must its square in float32";
  static const Rows rows = {
      {[](DistributionCall& c) { c.p.device = Device::kCuda; }, "the problem is on cuda, but cpu/native was asked to run it"},
      {[](DistributionCall& c) { c.p.mode = {}; }, "mode is unset" + modes},
      {[](DistributionCall& c) { c.p.mode = static_cast<DistributionLoss>(3); }, "mode is 3" + modes},
      {[](DistributionCall& c) { c.p.reduction = static_cast<Reduction>(3); }, "reduction is 3; it must be one of none, sum, mean"},
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
      {[](DistributionCall& c) { c.p.normalizer.dtype = DType::kF64; c.p.reduction = Reduction::kSum; }, "normalizer needs reduction 'mean', which it redefines"},
      {[](DistributionCall& c) { c.p.normalizer_stride = 2; }, "normalizer_stride is 2; it must be 0 or 1"},
      {[](DistributionCall& c) { c.p.reg_scale = 0; }, "reg_scale is 0" + positive},
      {[](DistributionCall& c) { c.p.reg_scale = -4; }, "reg_scale is -4" + positive},
      {[](DistributionCall& c) { c.p.reg_scale = kNan; }, "reg_scale is nan" + positive},
      {[](DistributionCall& c) { c.p.temperature = 1e30; }, "temperature is 1e+30" + positive},
      {[](DistributionCall& c) { c.p.temperature = 1e-30; }, "temperature is 1e-30" + positive},
      {[](DistributionCall& c) { c.p.temperature = 3; }, "temperature is 3; only mode 'ddf' has one"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.reg_scale = 3; }, "reg_scale is 3; only mode 'fgl' has one"},
      {[](DistributionCall& c) { c.p.sets = -1; }, "sets is -1" + negative},
      {[](DistributionCall& c) { c.p.images = kUnsetSize; }, "images is not set; it must be the number of images"},
      {[](DistributionCall& c) { c.p.queries = -1; }, "queries is -1" + negative},
      {[](DistributionCall& c) { c.p.bins = 1; }, "bins is 1; mode 'fgl' needs at least 2, to lie between"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.bins = 0; }, "bins is 0; it must be at least 1"},
      {[](DistributionCall& c) { c.p.targets = kUnsetSize; }, "targets is not set; it must be the number of boxes of target"},
      {[](DistributionCall& c) { c.p.targets = std::numeric_limits<std::int64_t>::max(); }, "targets is 9223372036854775807, more than 64 bits can count"},
      {[](DistributionCall& c) { c.p.images = c.p.queries = kMany; }, "logits has shape (2, 8589934592, 8589934592, 4 * 3), which is more than 64 bits can count"},
      {[](DistributionCall& c) { c.p.logits.query_stride = -12; }, "logits has a negative stride, -12"},
      {[](DistributionCall& c) { c.set_ddf(); c.p.teacher.set_stride = -36; }, "teacher has a negative stride, -36"},
      {[](DistributionCall& c) { c.p.logits.data = nullptr; }, "logits.data is null; where logits" + null},
      {[](DistributionCall& c) { c.p.target_index = {}; }, "target_index.dtype is not set; it must be that of (sets, images, queries) integers"},
      {[](DistributionCall& c) { c.p.target_index.data = nullptr; }, "target_index.data is null; where target_index" + null},
      {[](DistributionCall& c) { c.p.quality.data = nullptr; }, "quality.data is null; where quality" + null},
      {[](DistributionCall& c) { c.p.reference.data = nullptr; }, "reference.data is null; where reference" + null},
      {[](DistributionCall& c) { c.p.target.data = nullptr; }, "target.data is null; where target" + null},
      {[](DistributionCall& c) { c.p.edges.data = nullptr; }, "edges.data is null; where edges" + null},
      {[](DistributionCall& c) { c.set_ddf(); c.p.teacher.data = nullptr; }, "teacher.data is null; where teacher" + null},
      {[](DistributionCall& c) { c.set_ddf(); c.p.confidence.data = nullptr; }, "confidence.data is null; where confidence" + null},
      {[](DistributionCall& c) { c.p.normalizer.dtype = DType::kF64; }, "normalizer.data is null; where normalizer" + null},
      {[](DistributionCall& c) { shift(c.p.logits.data); }, "logits" + kOffFour + "float32"},
  };
  return rows;
}

TEST_CASE("a loss of distributions that is wrong is refused") {
  for (const auto run : {&DistributionCall::run, &DistributionCall::run_backward}) {
    require_refused<InvalidArgument>(wrong_problems(), run);
    require_refused<Unsupported>(Rows{
        {[](DistributionCall& c) { c.p.logits.dtype = DType::kI32; }, "logits is int32" + kNotFloating},
        {[](DistributionCall& c) { c.p.target_index.dtype = DType::kF32; }, "target_index is float32" + kNotIndices},
        {[](DistributionCall& c) { c.p.quality.dtype = DType::kI32; }, "quality is int32" + kNotFloating},
        {[](DistributionCall& c) { c.p.edges.dtype = DType::kI64; }, "edges is int64" + kNotFloating},
        {[](DistributionCall& c) { c.set_ddf(); c.p.teacher.dtype = DType::kU8; }, "teacher is uint8" + kNotFloating},
    }, run);
  }
  require_refused<Unsupported>(Rows{{[](DistributionCall& c) { c.implementation.distribution_loss = {}; }, "cpu/native does not serve distribution_loss"}});
  require_refused<Unsupported>(Rows{{[](DistributionCall& c) { c.implementation.distribution_loss_backward = {}; }, "cpu/native does not serve distribution_loss_backward"}}, &DistributionCall::run_backward);
  require_refused<InvalidArgument>(Rows{
      {[](DistributionCall& c) { c.outputs.loss = nullptr; }, "outputs.loss is null"},
      {[](DistributionCall& c) { shift(c.outputs.scale); }, "outputs.scale" + kOffFour + "float32"},
  });
  require_refused<InvalidArgument>(Rows{
      {[](DistributionCall& c) { c.p.grad = nullptr; }, "grad is null"},
      {[](DistributionCall& c) { c.p.scale = nullptr; }, "scale is null"},
      {[](DistributionCall& c) { c.gradients.logits = nullptr; }, "outputs.logits is null"},
  }, &DistributionCall::run_backward);
}
// clang-format on

TEST_CASE("a loss of distributions without fault is not refused") {
  require_ok<DistributionCall>([](DistributionCall&) {});
  require_ok<DistributionCall>([](DistributionCall& c) { c.set_ddf(); });
  require_ok<DistributionCall>([](DistributionCall& c) { c.p.quality = {}; });
  require_ok<DistributionCall>([](DistributionCall& c) {
    c.p.queries = 0;
    c.p.logits.data = c.p.reference.data = nullptr;
  });
  require_workspace_of<DistributionCall>(2 * 4 * sizeof(double));  // a task for each set
}

}  // namespace
}  // namespace boxloss
