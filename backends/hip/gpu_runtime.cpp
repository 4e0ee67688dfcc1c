// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include "gpu_error.hpp"

namespace boxloss::hip {
namespace {

/// As CMAKE_HIP_ARCHITECTURES spells it.
std::string architecture() {
  int device = 0;
  (void)hipGetDevice(&device);
  hipDeviceProp_t properties{};
  (void)hipGetDeviceProperties(&properties, device);
#if defined(__HIP_PLATFORM_NVIDIA__)
  return std::to_string(10 * properties.major + properties.minor);
#else
  const std::string name = properties.gcnArchName;  // such as gfx90a:sramecc+:xnack-
  return name.substr(0, name.find(':'));
#endif
}

}  // namespace

void check(hipError_t error, const char* what) {
  if (error == hipSuccess) return;
  (void)hipGetLastError();  // it is reported here; the next launch must not find it again
  const GpuError text{kName, what, hipGetErrorName(error), hipGetErrorString(error)};
  switch (error) {
    case hipErrorNoDevice:
    case hipErrorInsufficientDriver: throw_no_device(text);
    case hipErrorNoBinaryForGpu:
      throw_no_kernel(text, architecture(), "CMAKE_HIP_ARCHITECTURES", BOXLOSS_ARCHITECTURES);
    default: throw_device_error(text);
  }
}

}  // namespace boxloss::hip
