// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <boxloss/device.hpp>
#include <cstddef>

/// The platform layer of the GPU source in backends/gpu. backends/hip has a file of the same name
/// and content for HIP, tests/gpu_on_host one for the host; kernels and launches use no platform
/// directly. The namespace is the platform's own, so that one library can contain several.
#define BOXLOSS_GPU cuda

namespace boxloss::cuda {

using Stream = cudaStream_t;

/// Blocks of 256 threads, resident on a processor: the second argument of __launch_bounds__.
constexpr int kFloatBlocks = 4;

constexpr Device kDevice = Device::kCuda;
constexpr const char* kName = "cuda/native";

/// Throws DeviceError, or NoDevice if that is the cause, with `what` and the runtime's message.
void check(cudaError_t error, const char* what);

/// A captured launch may run again at any time, on any stream.
inline bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

/// The stream's id, which unlike its handle is never reused.
inline unsigned long long stream_id(Stream stream) {
  unsigned long long id = 0;
  check(cudaStreamGetId(stream, &id), "cudaStreamGetId");
  return id;
}

inline void zero_async(void* data, std::size_t bytes, Stream stream) {
  if (data == nullptr || bytes == 0) return;
  check(cudaMemsetAsync(data, 0, bytes, stream), "cudaMemsetAsync");
}

template <class T>
T* address_of_symbol(const T& symbol) {
  void* address = nullptr;
  check(cudaGetSymbolAddress(&address, symbol), "cudaGetSymbolAddress");
  return static_cast<T*>(address);
}

inline int processor_count(int device) {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  return count;
}

/// Makes a device current for as long as it lives.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    changed_ = before_ != device;
    if (changed_) check(cudaSetDevice(device), "cudaSetDevice");
  }
  ~DeviceScope() {
    if (changed_) (void)cudaSetDevice(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

#if defined(__CUDACC__)
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const char* name, unsigned blocks, unsigned threads,
            Stream stream, const Args&... args) {
  kernel<<<blocks, threads, 0, stream>>>(args...);
  check(cudaGetLastError(), name);
}

/// The value of the thread `lanes` further, within groups of kLanes = 32.
template <class T>
__device__ T shuffle_down(T value, int lanes) {
  return __shfl_down_sync(0xffffffffu, value, lanes);
}

/// Adds with acquire and release: the thread's earlier writes are visible to whoever sees the sum,
/// and others' writes before their addition are visible after it. Separate fences on either side
/// would cost several times as much.
__device__ inline unsigned long long add_acquire_release(unsigned long long* address,
                                                         unsigned long long value) {
  unsigned long long before;
  asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(address), "l"(value)
               : "memory");
  return before;
}
#endif

}  // namespace boxloss::cuda
