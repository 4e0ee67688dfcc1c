// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <boxloss/max_iou_match.hpp>

#include "adapter.hpp"
#include "checks.hpp"
#include "operators.hpp"

/// Max-IoU matching. It has no gradient, and bypasses autograd; function transforms are refused.
namespace boxloss::torch_binding {
namespace {

constexpr char kFunction[] = "max_iou_match";
constexpr char kOperator[] = "boxloss::max_iou_match";

struct MatchArgs {
  at::Tensor anchors;
  at::Tensor target;
  at::Tensor offsets;
  double high;
  double low;
  BOXLOSS_MAX_IOU_MATCH_OPTIONS(BOXLOSS_OPTION_MEMBER)

  auto fields() const {
    return std::tie(anchors, target, offsets, high,
                    low BOXLOSS_MAX_IOU_MATCH_OPTIONS(BOXLOSS_OPTION_NAME));
  }
};

/// target_index and iou.
using Matched = std::tuple<at::Tensor, at::Tensor>;

void check_arguments(const MatchArgs& a) {
  check_dense(kFunction, "anchors", a.anchors);
  check_device(kFunction, "anchors", a.anchors, "target", OptionalTensor(a.target));
  check_device(kFunction, "anchors", a.anchors, "offsets", OptionalTensor(a.offsets));
  check_boxes_shape(kFunction, "anchors", a.anchors);
  check_boxes_shape(kFunction, "target", a.target);
  TORCH_CHECK_VALUE(a.anchors.dim() == 2 || a.anchors.dim() == 3, kFunction, ": anchors has shape ",
                    a.anchors.sym_sizes(), "; it must be (A, 4) or (images, A, 4)");
  TORCH_CHECK_VALUE(a.target.dim() == 2, kFunction, ": target has shape ", a.target.sym_sizes(),
                    "; it must be (boxes of all images, 4)");
  TORCH_CHECK_VALUE(a.offsets.dim() == 1 && a.offsets.sym_size(0) >= 1, kFunction,
                    ": offsets has shape ", a.offsets.sym_sizes(), "; it must be (images + 1)");
  if (a.anchors.dim() == 3) {
    check_shape(kFunction, "offsets", a.offsets, {a.anchors.sym_size(0) + 1},
                "one more than anchors has images");
  }
}

MaxIouProblem describe(const MatchArgs& a) {
  MaxIouProblem p;
  p.low_quality = parse<LowQuality>(
      kFunction, "low_quality", a.low_quality,
      {LowQuality::kNone, LowQuality::kArgmax, LowQuality::kOverwrite, LowQuality::kForce});
  p.high = a.high;
  p.low = a.low;
  p.min_pos_iou = a.min_pos_iou;
  p.anchors.dtype = dtype_of(kFunction, "anchors", a.anchors, kFloatingDTypes);
  p.target.dtype = dtype_of(kFunction, "target", a.target);
  p.offsets = later(kFunction, "offsets", a.offsets, kIndexDTypes);
  with_torch_errors(kFunction, [&] { check_options(p); });
  check_arguments(a);
  return p;
}

Matched empty_outputs(const MatchArgs& a, const MaxIouProblem& p) {
  const std::vector<c10::SymInt> shape = {a.offsets.sym_size(0) - 1, a.anchors.sym_size(-2)};
  const auto type = compute_dtype(p) == DType::kF64 ? at::kDouble : at::kFloat;
  return {at::empty_symint(shape, a.anchors.options().dtype(at::kLong)),
          at::empty_symint(shape, a.anchors.options().dtype(type))};
}

Matched meta(const MatchArgs& a) { return empty_outputs(a, describe(a)); }

void set_boxes(BoxView& view, const at::Tensor& boxes) {
  const bool has_images = boxes.dim() == 3;
  view.data = boxes.const_data_ptr();
  view.images = has_images ? boxes.size(0) : 1;
  view.slots = boxes.size(-2);
  view.image_stride = has_images ? boxes.stride(0) : 0;
  view.slot_stride = boxes.stride(-2);
  view.coordinate_stride = boxes.stride(-1);
}

Matched matched(const MatchArgs& a) {
  MaxIouProblem p = describe(a);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return with_torch_errors(kFunction, [&] {
    const Implementation& implementation = implementation_on(a.anchors.device());
    if (a.offsets.is_cpu()) check_offsets(kFunction, a.offsets, a.target.size(0));
    const c10::OptionalDeviceGuard guard(a.anchors.device());
    const at::Tensor offsets = a.offsets.contiguous();
    p.device = implementation.device;
    set_boxes(p.anchors, a.anchors);
    p.anchors.images = offsets.size(0) - 1;  // which may share them
    set_boxes(p.target, a.target);
    p.offsets.data = offsets.const_data_ptr();
    const MaxIouPlan plan(implementation, p);
    const Matched outputs = empty_outputs(a, p);
    const auto& [target_index, iou] = outputs;
    const Scratch scratch(plan.workspace_bytes(), a.anchors);
    Execution execution = execution_on(a.anchors.device());
    execution.workspace = scratch.data();
    execution.workspace_bytes = plan.workspace_bytes();
    plan.run(arrays_of(p), {target_index.mutable_data_ptr(), iou.mutable_data_ptr()}, execution);
    return outputs;
  });
}

using Operator = WithoutGradient<
    Signature<Matched, std::tuple<>, decltype(std::declval<const MatchArgs&>().fields())>>;

constexpr Option kOptions[] = {BOXLOSS_MAX_IOU_MATCH_OPTIONS(BOXLOSS_OPTION_ROW)};

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss::torch_binding;
  m.def(("max_iou_match(Tensor anchors, Tensor target, Tensor offsets, float high, float low" +
         parameters(kOptions) + ") -> (Tensor target_index, Tensor iou)")
            .c_str(),
        {at::Tag::pt2_compliant_tag});
}

// Every device of torch: the registry says what serves it, or an error does.
TORCH_LIBRARY_IMPL(boxloss, CompositeExplicitAutograd, m) {
  using namespace boxloss::torch_binding;
  m.impl("max_iou_match", EntryOf<MatchArgs>::call<matched>);
}

TORCH_LIBRARY_IMPL(boxloss, Meta, m) {
  using namespace boxloss::torch_binding;
  m.impl("max_iou_match", EntryOf<MatchArgs>::call<meta>);
}

TORCH_LIBRARY_IMPL(boxloss, Autograd, m) {
  using namespace boxloss::torch_binding;
  m.impl("max_iou_match", Operator::past_autograd<kFunction, kOperator>);
}

TORCH_LIBRARY_IMPL(boxloss, FuncTorchBatched, m) {
  using namespace boxloss::torch_binding;
  m.impl("max_iou_match", Operator::refuse_vmap<kFunction>);
}
