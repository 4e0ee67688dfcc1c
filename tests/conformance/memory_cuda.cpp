// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "memory_gpu.hpp"

const boxloss::DeviceMemory* boxloss::conformance::cuda_memory() { return gpu_memory(); }
