// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/task_aligned_match.hpp"

#include "operation.hpp"

BOXLOSS_JAX_OPERATION(boxloss_jax_task_aligned_match, boxloss::binding::TaskAlignedMatch);
