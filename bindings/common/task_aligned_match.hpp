// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/task_aligned_match.hpp>

#include "arguments.hpp"
#include "dispatch/task_aligned_match.hpp"

namespace boxloss::binding {

/// The task-aligned match as frameworks call it.
struct TaskAlignedMatch {
  static constexpr char kFunction[] = "task_aligned_match",
                        kOperator[] = "boxloss::task_aligned_match";
  static constexpr std::array kOutputs = {"target_index", "score", "overlap"};
  BOXLOSS_ARGUMENTS(BOXLOSS_TASK_ALIGNED_MATCH_PARAMETERS);

  template <class Size>
  static TaskAlignedProblem describe(const Arguments<Described<Size>>& a) {
    TaskAlignedProblem p;
    p.scores.dtype = dtype_of(a.scores, kFloatingDTypes);
    p.pred.dtype = dtype_of(a.pred, kFloatingDTypes);
    p.pred.format = parse_format("pred_format", a.pred_format);
    p.points.dtype = dtype_of(a.points, kFloatingDTypes);
    p.target.dtype = dtype_of(a.target);
    p.offsets = view_of(a.offsets, kIndexDTypes);
    p.labels = view_of(a.labels, kIndexDTypes);
    p.topk = a.topk;
    p.topk2 = a.topk2;
    p.alpha = a.alpha;
    p.beta = a.beta;
    p.min_side = a.min_side;
    p.small_side = a.small_side;
    p.angle_unit = angle_unit_of(a.angle_unit, a.pred);

    check_shapes(a);
    if constexpr (kHasNumbers<Size>) {
      p.images = a.scores.size(0);
      p.anchors = a.scores.size(1);
      p.classes = a.scores.size(2);
      p.scores.data = a.scores.data;
      p.scores.image_stride = stride_of(a.scores, 3);
      p.scores.anchor_stride = stride_of(a.scores, 2);
      p.scores.class_stride = stride_of(a.scores, 1);
      p.points.data = a.points.data;
      p.points.image_stride = stride_of(a.points, 3);
      p.points.anchor_stride = stride_of(a.points, 2);
      p.points.coordinate_stride = stride_of(a.points, 1);
      set_boxes(p.pred, a.pred);
      set_boxes(p.target, a.target);
    }
    return p;
  }

  template <class Size>
  static void check_shapes(const Arguments<Described<Size>>& a) {
    check_shape_is(a.scores, a.scores.rank == 3, "(images, anchors, classes)");
    const Size &images = a.scores.size(0), &anchors = a.scores.size(1);
    check_boxes_shapes(a.pred, a.target);
    const int numbers = numbers_of(a.pred);
    check_shape(a.pred, {images, anchors, numbers}, "a box for each anchor of scores");
    const bool are_shared = a.points.rank == 2;
    check(
        are_shared ? has_shape(a.points, {anchors, 2}) : has_shape(a.points, {images, anchors, 2}),
        "points has shape ", ShapeOf(a.points), "; it must be [", anchors, ", 2], or [", images,
        ", ", anchors, ", 2]: a point for each anchor of scores");
    const char* const why = "a label for each box of target";
    if (a.offsets) {
      check(a.target.rank == 2, "target has shape ", ShapeOf(a.target),
            "; with offsets it must be (boxes of all images, ", numbers, ")");
      check_shape(a.offsets, {images + 1}, "one more than scores has images");
      return check_shape(a.labels, {a.target.size(0)}, why);
    }
    check(a.target.rank == 3 && Compare<Size>::equal(a.target.size(0), images), "target has shape ",
          ShapeOf(a.target), "; without offsets it must be (images, boxes, ", numbers, "), for ",
          images, " images");
    check_shape(a.labels, {images, a.target.size(1)}, why);
  }

  template <class Size>
  static std::array<Output<Size>, 3> outputs(const Arguments<Described<Size>>& a,
                                             const TaskAlignedProblem& p) {
    const std::vector<Size> shape = {a.scores.size(0), a.scores.size(1)};
    return {{{p.index, shape}, {DType::kF32, shape}, {DType::kF32, shape}}};
  }

  /// On a device bad offsets leave all anchors without a box, and so does a bad label its box'.
  static void check_values(const Arguments<Described<std::int64_t>>& a,
                           const TaskAlignedProblem& p) {
    const auto check_label = [&](std::int64_t row) {
      const std::int64_t label = integer_at(a.labels, row);
      check(label >= 0 && label < p.classes, "the label of row ", row, " of target is ", label,
            "; it must lie in [0, ", p.classes, ")");
    };
    if (a.offsets) {
      check_offsets_values(a.offsets, p.target.slots);
      const std::int64_t first = integer_at(a.offsets, 0), last = integer_at(a.offsets, p.images);
      for (std::int64_t row = first; row < last; ++row) check_label(row);
      return;
    }
    for (std::int64_t row = 0; row < p.target.images * p.target.slots; ++row) {
      const BoxView& target = p.target;
      const std::int64_t at =
          row / target.slots * target.image_stride + row % target.slots * target.slot_stride;
      const Elements<Any> values{target.data, target.dtype};
      with_boxes(p, [&](auto kind) {
        using B = decltype(kind);
        const B given = values.get_box<B>(at, target.coordinate_stride);
        if (is_given(in_radians(given, p.angle_unit.value_or(AngleUnit::kRadians)))) {
          check_label(row);
        }
      });
    }
  }

  static constexpr auto workspace_bytes = task_aligned_match_workspace_bytes;
  static void run(const Implementation& implementation, const TaskAlignedProblem& p,
                  const std::array<void*, 3>& outputs, const Execution& execution) {
    task_aligned_match(
        implementation, p,
        {outputs[0], static_cast<float*>(outputs[1]), static_cast<float*>(outputs[2])}, execution);
  }
};

}  // namespace boxloss::binding
