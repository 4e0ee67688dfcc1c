// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>
#include <string>

namespace boxloss::conformance {

/// What the command line names.
const std::string& subject_name();

/// What the command line divides the numbers of random mixes by; else 1.
int mixes_divisor();

/// The implementation of that name, which is under test. Skips the test, out loud, where its device
/// is missing.
const Implementation& subject();

}  // namespace boxloss::conformance
