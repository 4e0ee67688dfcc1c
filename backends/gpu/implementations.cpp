// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "operations.hpp"

namespace boxloss::BOXLOSS_GPU {

std::vector<Implementation> implementations() { return {implementation<Operations>(kName, 100)}; }

}  // namespace boxloss::BOXLOSS_GPU
