// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hip/hip_runtime.h>

#include <boxloss/device.hpp>
#include <cstddef>

/// The platform layer of the GPU source in backends/gpu, for HIP: on AMD GPUs, or on NVIDIA's
/// through HIP's own layer over CUDA.
#define BOXLOSS_GPU hip

namespace boxloss::hip {

using Stream = hipStream_t;

/// The second argument of __launch_bounds__. On AMD's GPUs it counts wavefronts, and 1 lets the
/// compiler take the registers that it needs.
#if defined(__HIP_PLATFORM_NVIDIA__)
constexpr int kFloatBlocks = 4;
#else
constexpr int kFloatBlocks = 1;
#endif

constexpr Device kDevice = Device::kHip;
constexpr const char* kName = "hip/native";

/// Throws DeviceError, or NoDevice if that is the cause, with `what` and the runtime's message.
void check(hipError_t error, const char* what);

/// A captured launch may run again at any time, on any stream.
inline bool is_capturing(Stream stream) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  check(hipStreamIsCapturing(stream, &status), "hipStreamIsCapturing");
  return status != hipStreamCaptureStatusNone;
}

/// An identifier of a stream, different for streams whose work may overlap.
inline unsigned long long stream_id(Stream stream) {
#if defined(__HIP_PLATFORM_NVIDIA__)
  unsigned long long id = 0;
  check(hipCUDAErrorTohipError(cudaStreamGetId(stream, &id)), "cudaStreamGetId");
  return id;
#else
  // AMD's runtime finishes a stream before its handle can be reused. One handle,
  // hipStreamPerThread, stands for a stream in each thread.
  static thread_local char own_stream;
  const void* const stands_for =
      stream == hipStreamPerThread ? &own_stream : static_cast<void*>(stream);
  return reinterpret_cast<unsigned long long>(stands_for);
#endif
}

inline void zero_async(void* data, std::size_t bytes, Stream stream) {
  if (data == nullptr || bytes == 0) return;
  check(hipMemsetAsync(data, 0, bytes, stream), "hipMemsetAsync");
}

template <class T>
T* address_of_symbol(const T& symbol) {
  void* address = nullptr;
  check(hipGetSymbolAddress(&address, HIP_SYMBOL(symbol)), "hipGetSymbolAddress");
  return static_cast<T*>(address);
}

inline int processor_count(int device) {
  int count = 0;
  check(hipDeviceGetAttribute(&count, hipDeviceAttributeMultiprocessorCount, device),
        "hipDeviceGetAttribute");
  return count;
}

/// Makes a device current for as long as it lives.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    check(hipGetDevice(&before_), "hipGetDevice");
    changed_ = before_ != device;
    if (changed_) check(hipSetDevice(device), "hipSetDevice");
  }
  ~DeviceScope() {
    if (changed_) (void)hipSetDevice(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

#if defined(__HIPCC__)
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const char* name, unsigned blocks, unsigned threads,
            Stream stream, const Args&... args) {
  kernel<<<blocks, threads, 0, stream>>>(args...);
  check(hipGetLastError(), name);
}

/// The value of the thread `lanes` further, within groups of kLanes = 32.
template <class T>
__device__ T shuffle_down(T value, int lanes) {
#if defined(__HIP_PLATFORM_NVIDIA__)
  return __shfl_down_sync(0xffffffffu, value, lanes);
#else
  return __shfl_down(value, lanes, 32);
#endif
}

/// Adds with acquire and release: the thread's earlier writes are visible to whoever sees the sum,
/// and others' writes before their addition are visible after it.
__device__ inline unsigned long long add_acquire_release(unsigned long long* address,
                                                         unsigned long long value) {
#if defined(__HIP_PLATFORM_NVIDIA__)
  unsigned long long before;
  asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(address), "l"(value)
               : "memory");
  return before;
#else
  return __hip_atomic_fetch_add(address, value, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
#endif
}
#endif

}  // namespace boxloss::hip
