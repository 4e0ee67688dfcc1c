// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/max_iou_match.hpp"
#include "../common/task_aligned_match.hpp"
#include "operation.hpp"

/// The operators that need nothing but their description.
TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss;
  const auto define = [&](auto op, std::vector<at::Tag> tags) {
    tags.push_back(at::Tag::pt2_compliant_tag);
    op.define(m, tags);
    op.refuse_transforms(m);
  };
  define(torch_binding::OperatorOf<binding::MaxIouMatch>(), {});
  define(torch_binding::OperatorOf<binding::TaskAlignedMatch>(), {at::Tag::needs_exact_strides});
}
