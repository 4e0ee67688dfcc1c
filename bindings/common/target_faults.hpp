// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/target_faults.hpp>

#include "arguments.hpp"

namespace boxloss::binding {

/// The search for faults in ground truth, without its answer for the host.
struct TargetFaults {
  BOXLOSS_ARGUMENTS(BOXLOSS_TARGET_FAULTS_PARAMETERS);

  template <class Size>
  static TargetProblem describe(const Arguments<Described<Size>>& a) {
    TargetProblem p;
    p.boxes = view_of(a.boxes, kDTypes);
    p.labels = {a.labels.data, index_dtype_of(a.labels)};
    p.image = view_of(a.image, kDTypes);
    p.classes = a.classes;
    p.images = a.images;
    p.has_sizes = a.has_sizes;
    check_boxes_shape(a.boxes);
    check_shape_is(a.boxes, a.boxes.rank == 2, "(rows, 4)");
    check_shape(a.labels, {a.boxes.size(0)}, "a label for each box");
    if (a.image) check_shape(a.image, {a.boxes.size(0)}, "an image for each box");
    if constexpr (kHasNumbers<Size>) p.rows = a.boxes.size(0);
    return p;
  }
};

}  // namespace boxloss::binding
