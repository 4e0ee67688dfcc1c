// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/max_iou_match.hpp>

#include "arguments.hpp"

namespace boxloss::binding {

/// Max-IoU matching as frameworks call it.
struct MaxIouMatch {
  static constexpr char kFunction[] = "max_iou_match", kOperator[] = "boxloss::max_iou_match";
  static constexpr std::array kOutputs = {"target_index", "iou"};
  BOXLOSS_ARGUMENTS(BOXLOSS_MAX_IOU_MATCH_PARAMETERS);

  template <class Size>
  static MaxIouProblem describe(const Arguments<Described<Size>>& a) {
    MaxIouProblem p;
    p.low_quality =
        parse("low_quality", a.low_quality,
              {LowQuality::kNone, LowQuality::kArgmax, LowQuality::kOverwrite, LowQuality::kForce});
    p.high = a.high;
    p.low = a.low;
    p.min_pos_iou = a.min_pos_iou;
    p.anchors.dtype = dtype_of(a.anchors, kFloatingDTypes);
    p.target.dtype = dtype_of(a.target);
    p.offsets = view_of(a.offsets, kIndexDTypes);
    p.angle_unit = angle_unit_of(a.angle_unit, a.anchors);

    check_boxes_shapes(a.anchors, a.target);
    const bool is_rotated = p.angle_unit.has_value();
    check_shape_is(a.anchors, a.anchors.rank == 2 || a.anchors.rank == 3,
                   is_rotated ? "(A, 5) or (images, A, 5)" : "(A, 4) or (images, A, 4)");
    check_shape_is(a.target, a.target.rank == 2,
                   is_rotated ? "(boxes of all images, 5)" : "(boxes of all images, 4)");
    check_offsets_shape(a.offsets);
    if (a.anchors.rank == 3) {
      check_shape(a.offsets, {a.anchors.size(0) + 1}, "one more than anchors has images");
    }
    if constexpr (kHasNumbers<Size>) {
      set_boxes(p.anchors, a.anchors);
      p.anchors.images = a.offsets.size(0) - 1;  // which may share them
      set_boxes(p.target, a.target);
    }
    return p;
  }

  template <class Size>
  static std::array<Output<Size>, 2> outputs(const Arguments<Described<Size>>& a,
                                             const MaxIouProblem& p) {
    const std::vector<Size> shape = {a.offsets.size(0) - 1, a.anchors.size(-2)};
    return {{{p.index, shape}, {compute_dtype(p), shape}}};
  }

  static void check_values(const Arguments<Described<std::int64_t>>& a, const MaxIouProblem&) {
    check_offsets_values(a.offsets, a.target.size(0));
  }

  static constexpr auto workspace_bytes = max_iou_match_workspace_bytes;
  static void run(const Implementation& implementation, const MaxIouProblem& p,
                  const std::array<void*, 2>& outputs, const Execution& execution) {
    max_iou_match(implementation, p, {outputs[0], outputs[1]}, execution);
  }
};

}  // namespace boxloss::binding
