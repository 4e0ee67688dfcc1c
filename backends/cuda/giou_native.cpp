// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "giou_native.hpp"

#include "pair_workspace.hpp"
#include "src/backends.hpp"

namespace boxloss {

Implementation cuda_native() {
  return {gpu::kName,
          gpu::kDevice,
          100,
          [](const GiouLossProblem&) { return std::string(); },
          [](const GiouLossProblem&) { return gpu::kWorkspaceBytes; },
          gpu::giou_forward,
          gpu::giou_backward};
}

}  // namespace boxloss
