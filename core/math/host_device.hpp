// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks a function that both the host and a GPU may run.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define BOXLOSS_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define BOXLOSS_HOST_DEVICE __attribute__((always_inline)) inline
#endif
