// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pairing/grid.hpp"

namespace boxloss {

/// Every slot counts.
struct Dense : Grid {};

}  // namespace boxloss
