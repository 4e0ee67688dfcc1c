// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include "gpu_error.hpp"

namespace boxloss::BOXLOSS_GPU {
namespace {

/// As CMAKE_CUDA_ARCHITECTURES or CMAKE_HIP_ARCHITECTURES spells it.
std::string architecture() {
  int device = 0;
  (void)BOXLOSS_VENDOR(GetDevice)(&device);
#if defined(__HIP_PLATFORM_AMD__)
  hipDeviceProp_t properties{};
  (void)hipGetDeviceProperties(&properties, device);
  const std::string name = properties.gcnArchName;  // such as gfx90a:sramecc+:xnack-
  return name.substr(0, name.find(':'));
#else
  int major = 0, minor = 0;
  (void)BOXLOSS_VENDOR(DeviceGetAttribute)(&major, kCapabilityMajor, device);
  (void)BOXLOSS_VENDOR(DeviceGetAttribute)(&minor, kCapabilityMinor, device);
  return std::to_string(10 * major + minor);
#endif
}

[[noreturn]] void throw_old_driver(const GpuError& error) {
#if defined(BOXLOSS_HIP)
  throw_no_device(error);
#else
  int version = 0;  // 12040 is CUDA 12.4, 0 no driver at all
  (void)cudaDriverGetVersion(&version);
  const std::string found = version == 0 ? "there is none"
                                         : message("this machine's is for CUDA ", version / 1000,
                                                   ".", version % 1000 / 10);
  throw NoDevice(message(error.text(), ". This build needs a driver for CUDA ",
                         CUDART_VERSION / 1000, " or later, and ", found,
                         ": install a newer one, or build with the CUDA toolkit that it is for. "
                         "What is on the CPU is computed without a driver."));
#endif
}

}  // namespace

void check(Error error, const char* what) {
  if (error == BOXLOSS_VENDOR(Success)) return;
  // It is reported here; the next launch must not find it again.
  (void)BOXLOSS_VENDOR(GetLastError)();
  const GpuError text{kName, what, BOXLOSS_VENDOR(GetErrorName)(error),
                      BOXLOSS_VENDOR(GetErrorString)(error)};
  switch (error) {
    case BOXLOSS_VENDOR(ErrorNoDevice): throw_no_device(text);
    case BOXLOSS_VENDOR(ErrorInsufficientDriver): throw_old_driver(text);
    case kErrorNoKernel:
      throw_no_kernel(text, architecture(), kArchitecturesOption, BOXLOSS_ARCHITECTURES);
    default: throw_device_error(text);
  }
}

}  // namespace boxloss::BOXLOSS_GPU
