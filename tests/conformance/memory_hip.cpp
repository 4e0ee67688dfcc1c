// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#define BOXLOSS_HIP
#include "memory_gpu.hpp"

const boxloss::DeviceMemory* boxloss::conformance::hip_memory() { return gpu_memory(); }
