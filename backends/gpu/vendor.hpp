// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The words of CUDA and HIP, side by side. Most differ only by their prefix: BOXLOSS_VENDOR writes
/// it, BOXLOSS_CALL also checks what a function returns. The rest are below. BOXLOSS_GPU is the
/// namespace of all that is compiled with them, so that one library can contain both.
#if defined(BOXLOSS_HIP)
#include <hip/hip_runtime.h>
#define BOXLOSS_GPU hip
#define BOXLOSS_VENDOR(word) hip##word
#define BOXLOSS_CALL(word, ...) check(hip##word(__VA_ARGS__), "hip" #word)
#else
#include <cuda_runtime.h>
#define BOXLOSS_GPU cuda
#define BOXLOSS_VENDOR(word) cuda##word
#define BOXLOSS_CALL(word, ...) check(cuda##word(__VA_ARGS__), "cuda" #word)
#endif

namespace boxloss::BOXLOSS_GPU {

using Error = BOXLOSS_VENDOR(Error_t);
using Stream = BOXLOSS_VENDOR(Stream_t);

#if defined(BOXLOSS_HIP)
constexpr const char* kName = "hip/native";
constexpr const char* kArchitecturesOption = "CMAKE_HIP_ARCHITECTURES";
constexpr Error kErrorNoKernel = hipErrorNoBinaryForGpu;
constexpr auto kProcessorCount = hipDeviceAttributeMultiprocessorCount;
constexpr auto kMostSharedMemory = hipDeviceAttributeMaxSharedMemoryPerBlock;
constexpr auto kCapabilityMajor = hipDeviceAttributeComputeCapabilityMajor;
constexpr auto kCapabilityMinor = hipDeviceAttributeComputeCapabilityMinor;
#else
constexpr const char* kName = "cuda/native";
constexpr const char* kArchitecturesOption = "CMAKE_CUDA_ARCHITECTURES";
constexpr Error kErrorNoKernel = cudaErrorNoKernelImageForDevice;
constexpr auto kProcessorCount = cudaDevAttrMultiProcessorCount;
constexpr auto kMostSharedMemory = cudaDevAttrMaxSharedMemoryPerBlockOptin;
constexpr auto kCapabilityMajor = cudaDevAttrComputeCapabilityMajor;
constexpr auto kCapabilityMinor = cudaDevAttrComputeCapabilityMinor;
#endif

}  // namespace boxloss::BOXLOSS_GPU
