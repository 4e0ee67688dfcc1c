// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "pair_workspace.hpp"
#include "pairings/with_pairing.hpp"
#include "passes.hpp"
#include "src/backends.hpp"

namespace boxloss {

Implementation BOXLOSS_GPU::native() {
  return {BOXLOSS_GPU::kName,
          BOXLOSS_GPU::kDevice,
          100,
          kLosses,
          kPairings,
          kExtras,
          kClassTerms,
          [](const LossProblem&) { return BOXLOSS_GPU::kWorkspaceBytes; },
          BOXLOSS_GPU::forward,
          BOXLOSS_GPU::backward,
          BOXLOSS_GPU::matching_cost};
}

}  // namespace boxloss
