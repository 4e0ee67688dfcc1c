// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "giou_native.hpp"

#include "pair_workspace.hpp"
#include "src/backends.hpp"

namespace boxloss {

Implementation BOXLOSS_GPU::native() {
  return {BOXLOSS_GPU::kName,
          BOXLOSS_GPU::kDevice,
          100,
          [](const GiouLossProblem&) { return std::string(); },
          [](const GiouLossProblem&) { return BOXLOSS_GPU::kWorkspaceBytes; },
          BOXLOSS_GPU::giou_forward,
          BOXLOSS_GPU::giou_backward};
}

}  // namespace boxloss
