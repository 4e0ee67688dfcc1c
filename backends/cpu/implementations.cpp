// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "cpu/operations.hpp"

namespace boxloss::cpu {

std::vector<Implementation> implementations() {
  return {implementation<native::Operations>("cpu/native", 100),
          implementation<reference::Operations>("cpu/reference", 0)};
}

}  // namespace boxloss::cpu
