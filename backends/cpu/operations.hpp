// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dispatch/operations.hpp"

/// What the two CPU implementations compute.
namespace boxloss {

namespace native {
struct Operations {
  BOXLOSS_OPERATIONS;
  BOXLOSS_WORKSPACES;
};
}  // namespace native

namespace reference {
struct Operations {
  BOXLOSS_OPERATIONS;
  static constexpr std::nullptr_t workspace_bytes = nullptr;
};
}  // namespace reference

}  // namespace boxloss
