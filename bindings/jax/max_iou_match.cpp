// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/max_iou_match.hpp>

#include "call.hpp"

/// Max-IoU matching.
namespace boxloss::jax_binding {
namespace {

struct MatchArgs {
  explicit MatchArgs(const Arguments& arguments)
      : anchors(given(arguments, "anchors")),
        target(given(arguments, "target")),
        offsets(given(arguments, "offsets")) {
    arguments.read("high", high);
    arguments.read("low", low);
    arguments.read("index", index);
    MatchArgs& options = *this;
    BOXLOSS_MAX_IOU_MATCH_OPTIONS(BOXLOSS_READ_OPTION)
  }

  const Operand& anchors;
  const Operand& target;
  const Operand& offsets;
  Number high;
  Number low;
  Word index;  ///< target_index's dtype
  BOXLOSS_MAX_IOU_MATCH_OPTIONS(BOXLOSS_OPTION_MEMBER)
};

void check_shapes(const MatchArgs& a) {
  check_boxes_shape(a.anchors);
  check_boxes_shape(a.target);
  const std::vector<std::int64_t>&anchors = a.anchors.shape, &offsets = a.offsets.shape;
  check(anchors.size() == 2 || anchors.size() == 3, "anchors has shape ", text_of(anchors),
        "; it must be (A, 4) or (images, A, 4)");
  check(a.target.shape.size() == 2, "target has shape ", text_of(a.target.shape),
        "; it must be (boxes of all images, 4)");
  check(offsets.size() == 1 && offsets[0] >= 1, "offsets has shape ", text_of(offsets),
        "; it must be (images + 1)");
  if (anchors.size() == 3) {
    check_shape(a.offsets, {anchors[0] + 1}, "one more than anchors has images");
  }
}

/// Memory comes with the run.
MaxIouProblem describe_on(const Implementation& implementation, const MatchArgs& a) {
  MaxIouProblem p;
  p.device = implementation.device;
  p.low_quality =
      parse("low_quality", a.low_quality,
            {LowQuality::kNone, LowQuality::kArgmax, LowQuality::kOverwrite, LowQuality::kForce});
  p.high = a.high;
  p.low = a.low;
  p.min_pos_iou = a.min_pos_iou;
  p.anchors.dtype = dtype_of(a.anchors, kFloatingDTypes);
  p.target.dtype = dtype_of(a.target);
  p.offsets = later(&a.offsets, kIndexDTypes);
  p.index = parse("index", a.index, {DType::kI32, DType::kI64});
  check_options(p);

  check_shapes(a);
  p.anchors.data = kLater;
  p.anchors.images = a.offsets.shape[0] - 1;  // which may share them
  p.anchors.slots = a.anchors.shape.end()[-2];
  p.anchors.image_stride = a.anchors.shape.size() == 3 ? 4 * p.anchors.slots : 0;
  p.target.data = kLater;
  p.target.slots = a.target.shape[0];
  return p;
}

std::size_t workspace(const Arguments& arguments, const Implementation& implementation) {
  const MaxIouProblem problem = describe_on(implementation, MatchArgs(arguments));
  return if_served([&] { return MaxIouPlan(implementation, problem).workspace_bytes(); });
}

void match(const Call& call) {
  const MatchArgs args(call.arguments);
  MaxIouPlan(call.implementation, describe_on(call.implementation, args))
      .run({args.anchors.data, args.target.data, args.offsets.data},
           {call.result("target_index"), call.result("iou")}, call.execution);
}

}  // namespace
}  // namespace boxloss::jax_binding

BOXLOSS_JAX_CHECK(boxloss_jax_max_iou_match, boxloss::jax_binding::workspace);
BOXLOSS_JAX_HANDLERS(boxloss_jax_max_iou_match, boxloss::jax_binding::match);
