// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

namespace boxloss::BOXLOSS_GPU {

constexpr int kThreads = 256;

/// The size of a group of threads that exchange values by shuffles and take an image's slots
/// together. It is the narrowest wavefront's, so that one source is correct on wavefronts of 32 and
/// of 64.
constexpr int kLanes = 32;

}  // namespace boxloss::BOXLOSS_GPU
