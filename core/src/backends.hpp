// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>

/// Each backend that can be built defines one of these.
namespace boxloss {

Implementation cpu_reference();
Implementation cpu_native();
Implementation cuda_native();

}  // namespace boxloss
