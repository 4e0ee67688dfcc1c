// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/assign.hpp"

#include "operation.hpp"

BOXLOSS_JAX_OPERATION(boxloss_jax_assign, boxloss::binding::Assign);
