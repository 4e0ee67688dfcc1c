// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/task_aligned_match.hpp>

#include "call.hpp"

/// The task-aligned match.
namespace boxloss::jax_binding {
namespace {

struct MatchArgs {
  explicit MatchArgs(const Arguments& arguments)
      : scores(given(arguments, "scores")),
        pred(given(arguments, "pred")),
        points(given(arguments, "points")),
        target(given(arguments, "target")),
        labels(given(arguments, "labels")) {
    arguments.read("offsets", offsets);
    arguments.read("index", index);
    MatchArgs& options = *this;
    BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(BOXLOSS_READ_OPTION)
  }

  const Operand& scores;
  const Operand& pred;
  const Operand& points;
  const Operand& target;
  const Operand& labels;
  Array offsets;
  Word index;  ///< target_index's dtype
  BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(BOXLOSS_OPTION_MEMBER)
};

void check_shapes(const MatchArgs& a) {
  using Shape = std::vector<std::int64_t>;
  const Shape &scores = a.scores.shape, &points = a.points.shape, &target = a.target.shape;
  check(scores.size() == 3, "scores has shape ", text_of(scores),
        "; it must be (images, anchors, classes)");
  const std::int64_t images = scores[0], anchors = scores[1];
  check_shape(a.pred, {images, anchors, 4}, "a box for each anchor of scores");
  const Shape shared = {anchors, 2}, of_images = {images, anchors, 2};
  check(points == shared || points == of_images, "points has shape ", text_of(points),
        "; it must be ", text_of(shared), ", or ", text_of(of_images),
        ": a point for each anchor of scores");
  check_boxes_shape(a.target);
  const char* const why = "a label for each box of target";
  if (a.offsets != nullptr) {
    check(target.size() == 2, "target has shape ", text_of(target),
          "; with offsets it must be (boxes of all images, 4)");
    check_shape(*a.offsets, {images + 1}, "one more than scores has images");
    return check_shape(a.labels, {target[0]}, why);
  }
  check(target.size() == 3 && target[0] == images, "target has shape ", text_of(target),
        "; without offsets it must be (images, boxes, 4), for ", images, " images");
  check_shape(a.labels, {images, target[1]}, why);
}

/// Memory comes with the run.
TaskAlignedProblem describe_on(const Implementation& implementation, const MatchArgs& a) {
  TaskAlignedProblem p;
  p.device = implementation.device;
  p.scores.dtype = dtype_of(a.scores, kFloatingDTypes);
  p.pred.dtype = dtype_of(a.pred, kFloatingDTypes);
  p.pred.format = parse_format("pred_format", a.pred_format);
  p.points.dtype = dtype_of(a.points, kFloatingDTypes);
  p.target.dtype = dtype_of(a.target);
  p.offsets = later(a.offsets, kIndexDTypes);
  p.labels = later(&a.labels, kIndexDTypes);
  p.topk = a.topk;
  p.topk2 = a.topk2;
  p.alpha = a.alpha;
  p.beta = a.beta;
  p.min_side = a.min_side;
  p.small_side = a.small_side;
  p.index = parse("index", a.index, {DType::kI32, DType::kI64});
  check_options(p);

  check_shapes(a);
  p.images = a.scores.shape[0];
  p.anchors = a.scores.shape[1];
  p.classes = a.scores.shape[2];
  p.scores.data = kLater;
  p.scores.image_stride = p.anchors * p.classes;
  p.scores.anchor_stride = p.classes;
  p.points.data = kLater;
  p.points.image_stride = a.points.shape.size() == 3 ? 2 * p.anchors : 0;
  const auto set_boxes = [](BoxView& view, std::int64_t images, std::int64_t slots) {
    view.data = kLater;
    view.images = images;
    view.slots = slots;
    view.image_stride = 4 * slots;
  };
  set_boxes(p.pred, p.images, p.anchors);
  set_boxes(p.target, a.offsets == nullptr ? p.images : 1, a.target.shape.end()[-2]);
  return p;
}

std::size_t workspace(const Arguments& arguments, const Implementation& implementation) {
  const TaskAlignedProblem problem = describe_on(implementation, MatchArgs(arguments));
  return if_served([&] { return TaskAlignedPlan(implementation, problem).workspace_bytes(); });
}

void match(const Call& call) {
  const MatchArgs args(call.arguments);
  TaskAlignedPlan(call.implementation, describe_on(call.implementation, args))
      .run({args.scores.data, args.pred.data, args.points.data, args.target.data,
            data_of(args.offsets), args.labels.data},
           {call.result("target_index"), static_cast<float*>(call.result("score")),
            static_cast<float*>(call.result("overlap"))},
           call.execution);
}

}  // namespace
}  // namespace boxloss::jax_binding

BOXLOSS_JAX_CHECK(boxloss_jax_task_aligned_match, boxloss::jax_binding::workspace);
BOXLOSS_JAX_HANDLERS(boxloss_jax_task_aligned_match, boxloss::jax_binding::match);
