// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>

/// The functions that the backends define.
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
/// One for each execution space of this Kokkos.
std::vector<Implementation> implementations();
}  // namespace kokkos

}  // namespace boxloss
