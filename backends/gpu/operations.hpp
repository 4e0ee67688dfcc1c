// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

#include "dispatch/operations.hpp"

namespace boxloss::BOXLOSS_GPU {

/// The two passes of box losses, and the other operations, are separate translation units, so that
/// processors share the work.
struct Operations {
  BOXLOSS_OPERATIONS;
  BOXLOSS_WORKSPACES;
};

}  // namespace boxloss::BOXLOSS_GPU
