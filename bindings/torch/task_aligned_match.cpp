// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/task_aligned_match.hpp"

#include "operation.hpp"

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss;
  using Operator = torch_binding::OperatorOf<binding::TaskAlignedMatch>;
  Operator::define(m, {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides});
  Operator::refuse_transforms(m);
}
