// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/matching_cost.hpp"

#include "operation.hpp"

BOXLOSS_JAX_OPERATION(boxloss_jax_matching_cost, boxloss::binding::MatchingCost);
