// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pairings/grid.hpp"

namespace boxloss {

/// Every slot is valid.
struct Dense : Grid {};

}  // namespace boxloss
