// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/max_iou_match.hpp"

#include "operation.hpp"

BOXLOSS_JAX_OPERATION(boxloss_jax_max_iou_match, boxloss::binding::MaxIouMatch);
