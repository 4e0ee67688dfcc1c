// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dispatch/operations.hpp"

namespace boxloss::kokkos {

struct Workspaces {
  BOXLOSS_WORKSPACES;
};

/// For the host space and for the device space. What is computed of boxes and of rotated boxes has
/// a source file for each space, so that two processors share the work.
template <class Space>
struct Operations : Workspaces {
  BOXLOSS_OPERATIONS;
};

}  // namespace boxloss::kokkos
