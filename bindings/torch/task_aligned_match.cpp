// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <boxloss/task_aligned_match.hpp>

#include "adapter.hpp"
#include "checks.hpp"
#include "operators.hpp"

/// The task-aligned match. It has no gradient, and bypasses autograd; function transforms are
/// refused.
namespace boxloss::torch_binding {
namespace {

constexpr char kFunction[] = "task_aligned_match";
constexpr char kOperator[] = "boxloss::task_aligned_match";

struct MatchArgs {
  at::Tensor scores;
  at::Tensor pred;
  at::Tensor points;
  at::Tensor target;
  OptionalTensor offsets;
  at::Tensor labels;
  BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(BOXLOSS_OPTION_MEMBER)

  auto fields() const {
    return std::tie(scores, pred, points, target, offsets,
                    labels BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(BOXLOSS_OPTION_NAME));
  }
};

/// target_index, score, overlap.
using Matched = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

void check_shapes(const MatchArgs& a) {
  TORCH_CHECK_VALUE(a.scores.dim() == 3, kFunction, ": scores has shape ", a.scores.sym_sizes(),
                    "; it must be (images, anchors, classes)");
  const c10::SymInt images = a.scores.sym_size(0), anchors = a.scores.sym_size(1);
  check_shape(kFunction, "pred", a.pred, {images, anchors, 4}, "a box for each anchor of scores");
  const bool are_shared = a.points.dim() == 2;
  TORCH_CHECK_VALUE(
      a.points.sym_sizes() ==
          c10::SymIntArrayRef(are_shared ? std::vector<c10::SymInt>{anchors, 2}
                                         : std::vector<c10::SymInt>{images, anchors, 2}),
      kFunction, ": points has shape ", a.points.sym_sizes(), "; it must be [", anchors,
      ", 2], or [", images, ", ", anchors, ", 2]: a point for each anchor of scores");
  check_boxes_shape(kFunction, "target", a.target);
  const char* const why = "a label for each box of target";
  if (a.offsets) {
    TORCH_CHECK_VALUE(a.target.dim() == 2, kFunction, ": target has shape ", a.target.sym_sizes(),
                      "; with offsets it must be (boxes of all images, 4)");
    check_shape(kFunction, "offsets", *a.offsets, {images + 1}, "one more than scores has images");
    return check_shape(kFunction, "labels", a.labels, {a.target.sym_size(0)}, why);
  }
  TORCH_CHECK_VALUE(a.target.dim() == 3 && a.target.sym_size(0) == images, kFunction,
                    ": target has shape ", a.target.sym_sizes(),
                    "; without offsets it must be (images, boxes, 4), for ", images, " images");
  check_shape(kFunction, "labels", a.labels, {images, a.target.sym_size(1)}, why);
}

/// The problem that the arguments describe, without sizes, strides and pointers, as for a loss.
TaskAlignedProblem describe(const MatchArgs& a) {
  check_dense(kFunction, "scores", a.scores);
  const auto check_with_scores = [&](const char* argument, const OptionalTensor& tensor) {
    check_device(kFunction, "scores", a.scores, argument, tensor);
  };
  check_with_scores("pred", a.pred);
  check_with_scores("points", a.points);
  check_with_scores("target", a.target);
  check_with_scores("offsets", a.offsets);
  check_with_scores("labels", a.labels);
  TaskAlignedProblem p;
  p.scores.dtype = dtype_of(kFunction, "scores", a.scores, kFloatingDTypes);
  p.pred.dtype = dtype_of(kFunction, "pred", a.pred, kFloatingDTypes);
  p.pred.format = parse_format(kFunction, "pred_format", a.pred_format);
  p.points.dtype = dtype_of(kFunction, "points", a.points, kFloatingDTypes);
  p.target.dtype = dtype_of(kFunction, "target", a.target);
  p.offsets = later(kFunction, "offsets", a.offsets, kIndexDTypes);
  p.labels = later(kFunction, "labels", a.labels, kIndexDTypes);
  p.topk = a.topk;
  p.topk2 = a.topk2;
  p.alpha = a.alpha;
  p.beta = a.beta;
  p.min_side = a.min_side;
  p.small_side = a.small_side;
  with_torch_errors(kFunction, [&] { check_options(p); });
  check_shapes(a);
  return p;
}

Matched empty_outputs(const MatchArgs& a) {
  const std::vector<c10::SymInt> shape = {a.scores.sym_size(0), a.scores.sym_size(1)};
  const auto empty = [&](at::ScalarType type) {
    return at::empty_symint(shape, a.scores.options().dtype(type));
  };
  return {empty(at::kLong), empty(at::kFloat), empty(at::kFloat)};
}

Matched meta(const MatchArgs& a) {
  describe(a);
  return empty_outputs(a);
}

/// Only the host can look at offsets and labels and raise; on a device bad offsets leave all
/// anchors to nobody, and so does a bad label its box's.
void check_on_host(const MatchArgs& a) {
  const at::Tensor labels = a.labels.to(at::kLong).contiguous();
  const auto* const label = labels.const_data_ptr<std::int64_t>();
  const std::int64_t classes = a.scores.size(2);
  const auto check_label = [&](std::int64_t row) {
    TORCH_CHECK_VALUE(label[row] >= 0 && label[row] < classes, kFunction, ": the label of row ",
                      row, " of target is ", label[row], "; it must lie in [0, ", classes, ")");
  };
  if (!a.offsets) {
    const at::Tensor has_box = a.target.to(at::kDouble).sum(-1).gt(0).contiguous();
    for (std::int64_t row = 0; row < has_box.numel(); ++row) {
      if (has_box.const_data_ptr<bool>()[row]) check_label(row);
    }
    return;
  }
  const at::Tensor offsets = a.offsets->to(at::kLong).contiguous();
  check_offsets(kFunction, offsets, a.target.size(0));
  const auto* const offset = offsets.const_data_ptr<std::int64_t>();
  for (std::int64_t row = offset[0]; row < offset[a.scores.size(0)]; ++row) check_label(row);
}

Matched matched(const MatchArgs& a) {
  TaskAlignedProblem p = describe(a);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (a.scores.is_cpu()) check_on_host(a);
  return with_torch_errors(kFunction, [&] {
    const Implementation& implementation = implementation_on(a.scores.device());
    const c10::OptionalDeviceGuard guard(a.scores.device());
    const at::Tensor offsets = a.offsets ? a.offsets->contiguous() : at::Tensor();
    const at::Tensor labels = a.labels.contiguous();
    p.device = implementation.device;
    p.images = a.scores.size(0);
    p.anchors = a.scores.size(1);
    p.classes = a.scores.size(2);
    p.scores = {a.scores.const_data_ptr(), p.scores.dtype, a.scores.stride(0), a.scores.stride(1),
                a.scores.stride(2)};
    const bool are_shared = a.points.dim() == 2;
    p.points = {a.points.const_data_ptr(), p.points.dtype, are_shared ? 0 : a.points.stride(0),
                a.points.stride(-2), a.points.stride(-1)};
    const auto set_boxes = [](BoxView& view, const at::Tensor& boxes) {
      view.data = boxes.const_data_ptr();
      view.images = boxes.size(0);
      view.slots = boxes.size(1);
      view.image_stride = boxes.stride(0);
      view.slot_stride = boxes.stride(1);
      view.coordinate_stride = boxes.stride(2);
    };
    set_boxes(p.pred, a.pred);
    set_boxes(p.target, a.offsets ? a.target.unsqueeze(0) : a.target);
    if (a.offsets) p.offsets.data = offsets.const_data_ptr();
    p.labels.data = labels.const_data_ptr();
    const TaskAlignedPlan plan(implementation, p);
    const Matched outputs = empty_outputs(a);
    const auto& [target_index, score, overlap] = outputs;
    const Scratch scratch(plan.workspace_bytes(), a.scores);
    Execution execution = execution_on(a.scores.device());
    execution.workspace = scratch.data();
    execution.workspace_bytes = plan.workspace_bytes();
    plan.run(arrays_of(p),
             {target_index.mutable_data_ptr(), score.mutable_data_ptr<float>(),
              overlap.mutable_data_ptr<float>()},
             execution);
    return outputs;
  });
}

using Operator = WithoutGradient<
    Signature<Matched, std::tuple<>, decltype(std::declval<const MatchArgs&>().fields())>>;

constexpr Option kOptions[] = {BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(BOXLOSS_OPTION_ROW)};

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss::torch_binding;
  m.def(("task_aligned_match(Tensor scores, Tensor pred, Tensor points, Tensor target, "
         "Tensor? offsets, Tensor labels" +
         parameters(kOptions) + ") -> (Tensor target_index, Tensor score, Tensor overlap)")
            .c_str(),
        {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides});
}

// Every device of torch: the registry says what serves it, or an error does.
TORCH_LIBRARY_IMPL(boxloss, CompositeExplicitAutograd, m) {
  using namespace boxloss::torch_binding;
  m.impl("task_aligned_match", EntryOf<MatchArgs>::call<matched>);
}

TORCH_LIBRARY_IMPL(boxloss, Meta, m) {
  using namespace boxloss::torch_binding;
  m.impl("task_aligned_match", EntryOf<MatchArgs>::call<meta>);
}

TORCH_LIBRARY_IMPL(boxloss, Autograd, m) {
  using namespace boxloss::torch_binding;
  m.impl("task_aligned_match", Operator::past_autograd<kFunction, kOperator>);
}

TORCH_LIBRARY_IMPL(boxloss, FuncTorchBatched, m) {
  using namespace boxloss::torch_binding;
  m.impl("task_aligned_match", Operator::refuse_vmap<kFunction>);
}
