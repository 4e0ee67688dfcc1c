// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/collate_targets.hpp"
#include "../common/max_iou_match.hpp"
#include "../common/task_aligned_match.hpp"
#include "operator.hpp"

/// The operators that need nothing but their description.
TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss;
  using namespace boxloss::torch_binding;
  static Operator collate_targets = operator_of<binding::CollateTargets>();
  static Operator max_iou_match = operator_of<binding::MaxIouMatch>();
  static Operator task_aligned_match = operator_of<binding::TaskAlignedMatch>();
  define(m, collate_targets);
  define(m, max_iou_match);
  define(m, task_aligned_match, {at::Tag::needs_exact_strides});
  for (const Operator* const each : {&collate_targets, &max_iou_match, &task_aligned_match}) {
    refuse_transforms(m, *each);
  }
}
