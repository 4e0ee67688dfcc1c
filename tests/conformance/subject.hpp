// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>

namespace boxloss::conformance {

/// The implementation under test, which the command line names. Skips the test, out loud, where its
/// device is missing.
const Implementation& subject();

}  // namespace boxloss::conformance
