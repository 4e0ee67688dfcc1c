// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/max_iou_match.hpp>

#include "../kernels/max_iou_match.hpp"
#include "compute_type.hpp"

namespace boxloss {

template <class C>
MaxIouArgs<C> max_iou_args(const MaxIouProblem& p, const MaxIouOutputs& outputs) {
  return {boxes<Any>(p.anchors),
          boxes<Any>(p.target),
          p.angle_unit.value_or(AngleUnit::kRadians),
          indices(p.offsets),
          p.anchors.images,
          p.anchors.slots,
          p.target.slots,
          static_cast<C>(p.high),
          static_cast<C>(p.low),
          static_cast<C>(p.min_pos_iou),
          p.low_quality,
          {outputs.target_index, p.index == DType::kI64},
          static_cast<C*>(outputs.iou)};
}

/// Calls launch(B()) for the boxes of the compute type; or, where there are no boxes, writes that
/// no anchor has one by fill(pointer, byte, bytes).
template <class Fill, class Launch>
void dispatch(const MaxIouProblem& p, const MaxIouOutputs& outputs, const Fill& fill,
              const Launch& launch) {
  const auto anchors = static_cast<std::size_t>(p.anchors.images * p.anchors.slots);
  if (anchors == 0) return;
  if (p.target.slots == 0) {
    static_assert(kNoBox == -1);  // all bits set
    fill(outputs.target_index, 0xff, anchors * size_of(p.index));
    return fill(outputs.iou, 0, anchors * size_of(compute_dtype(p)));
  }
  with_boxes(p, launch);
}

}  // namespace boxloss
