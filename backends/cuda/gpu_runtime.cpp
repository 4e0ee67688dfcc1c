// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include "gpu_error.hpp"

namespace boxloss::cuda {
namespace {

/// As CMAKE_CUDA_ARCHITECTURES spells it.
std::string architecture() {
  int device = 0, major = 0, minor = 0;
  (void)cudaGetDevice(&device);
  (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return std::to_string(10 * major + minor);
}

}  // namespace

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // it is reported here; the next launch must not find it again
  const GpuError text{kName, what, cudaGetErrorName(error), cudaGetErrorString(error)};
  switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver: throw_no_device(text);
    case cudaErrorNoKernelImageForDevice:
      throw_no_kernel(text, architecture(), "CMAKE_CUDA_ARCHITECTURES", BOXLOSS_ARCHITECTURES);
    default: throw_device_error(text);
  }
}

}  // namespace boxloss::cuda
