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

[[noreturn]] void throw_old_driver(const GpuError& error) {
  int version = 0;  // 12040 is CUDA 12.4, 0 no driver at all
  (void)cudaDriverGetVersion(&version);
  const std::string found = version == 0 ? "there is none"
                                         : message("this machine's is for CUDA ", version / 1000,
                                                   ".", version % 1000 / 10);
  throw NoDevice(message(error.text(), ". This build needs a driver for CUDA ",
                         CUDART_VERSION / 1000, " or later, and ", found,
                         ": install a newer one, or build with the CUDA toolkit that it is for. "
                         "What is on the CPU is computed without a driver."));
}

}  // namespace

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // it is reported here; the next launch must not find it again
  const GpuError text{kName, what, cudaGetErrorName(error), cudaGetErrorString(error)};
  switch (error) {
    case cudaErrorNoDevice: throw_no_device(text);
    case cudaErrorInsufficientDriver: throw_old_driver(text);
    case cudaErrorNoKernelImageForDevice:
      throw_no_kernel(text, architecture(), "CMAKE_CUDA_ARCHITECTURES", BOXLOSS_ARCHITECTURES);
    default: throw_device_error(text);
  }
}

}  // namespace boxloss::cuda
