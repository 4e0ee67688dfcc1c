// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>

/// What each backend that can be built defines.
namespace boxloss {

namespace cpu {
Implementation native();
Implementation reference();
}  // namespace cpu

namespace cuda {
Implementation native();
}

namespace hip {
Implementation native();
}

namespace kokkos {
/// One for each execution space that this Kokkos has.
std::vector<Implementation> implementations();
}  // namespace kokkos

}  // namespace boxloss
