// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu_runtime.hpp"

#include <boxloss/error.hpp>

#include "src/message.hpp"

namespace boxloss::gpu {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // it is reported here; the next launch must not find it again
  const std::string text = message(kName, ": ", what, " failed: ", cudaGetErrorString(error), " (",
                                   cudaGetErrorName(error), ")");
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) throw NoDevice(text);
  throw DeviceError(text);
}

}  // namespace boxloss::gpu
