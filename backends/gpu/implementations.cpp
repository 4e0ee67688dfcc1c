// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include "dispatch/with_pairing.hpp"
#include "operations.hpp"
#include "src/backends.hpp"
#include "workspace.hpp"

namespace boxloss {

Implementation BOXLOSS_GPU::native() {
  Implementation self;
  self.name = BOXLOSS_GPU::kName;
  self.device = BOXLOSS_GPU::kDevice;
  self.priority = 100;
  self.box_loss.losses = kLosses;
  self.box_loss.pairings = kPairings;
  self.box_loss.extras = kExtras;
  self.box_loss.workspace_bytes = [](const LossProblem&) { return BOXLOSS_GPU::kWorkspaceBytes; };
  self.box_loss.forward = BOXLOSS_GPU::forward;
  self.box_loss.backward = BOXLOSS_GPU::backward;
  self.matching_cost.losses = kLosses;
  self.matching_cost.class_terms = kClassTerms;
  self.matching_cost.run = BOXLOSS_GPU::matching_cost;
  return self;
}

}  // namespace boxloss
