// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/max_iou_match.hpp"

#include "operation.hpp"

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss;
  using Operator = torch_binding::OperatorOf<binding::MaxIouMatch>;
  Operator::define(m, {at::Tag::pt2_compliant_tag});
  Operator::refuse_transforms(m);
}
