// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "vendor.hpp"

/// The platform layer of the GPU source, for CUDA, and for HIP on AMD's GPUs or through its headers
/// on NVIDIA's; kernels and launches use no platform directly. tests/gpu_on_host has a file of this
/// name for the host, first in its include path: include this one as <gpu_runtime.hpp>.
namespace boxloss::BOXLOSS_GPU {

/// Blocks of 256 threads, resident on a processor: the second argument of __launch_bounds__. On
/// AMD's GPUs it counts wavefronts, and 1 lets the compiler take the registers that it needs.
#if defined(__HIP_PLATFORM_AMD__)
constexpr int kFloatBlocks = 1;
#else
constexpr int kFloatBlocks = 4;
#endif

/// Throws DeviceError, or NoDevice if that is the cause, with `what` and the runtime's message.
void check(Error error, const char* what);

/// A captured launch may run again at any time, on any stream.
inline bool is_capturing(Stream stream) {
  BOXLOSS_VENDOR(StreamCaptureStatus) status = BOXLOSS_VENDOR(StreamCaptureStatusNone);
  BOXLOSS_CALL(StreamIsCapturing, stream, &status);
  return status != BOXLOSS_VENDOR(StreamCaptureStatusNone);
}

/// An identifier of a stream, different for streams whose work may overlap.
inline unsigned long long stream_id(Stream stream) {
#if defined(__HIP_PLATFORM_AMD__)
  // HIP has no ids, but AMD's runtime finishes a stream before its handle can be reused. One
  // handle, hipStreamPerThread, stands for a stream in each thread.
  static thread_local char own_stream;
  const void* const stands_for =
      stream == hipStreamPerThread ? &own_stream : static_cast<void*>(stream);
  return reinterpret_cast<unsigned long long>(stands_for);
#else
  // Unlike its handle, a stream's id is never reused.
  unsigned long long id = 0;
#if defined(BOXLOSS_HIP)
  check(hipCUDAErrorTohipError(cudaStreamGetId(stream, &id)), "cudaStreamGetId");
#else
  check(cudaStreamGetId(stream, &id), "cudaStreamGetId");
#endif
  return id;
#endif
}

/// Sets each byte; null is left out.
inline void fill_async(void* data, int byte, std::size_t bytes, Stream stream) {
  if (data == nullptr || bytes == 0) return;
  BOXLOSS_CALL(MemsetAsync, data, byte, bytes, stream);
}

inline void zero_async(void* data, std::size_t bytes, Stream stream) {
  fill_async(data, 0, bytes, stream);
}

template <class T>
T* address_of_symbol(const T& symbol) {
  void* address = nullptr;
  BOXLOSS_CALL(GetSymbolAddress, &address, static_cast<const void*>(&symbol));
  return static_cast<T*>(address);
}

inline int processor_count(int device) {
  int count = 0;
  BOXLOSS_CALL(DeviceGetAttribute, &count, kProcessorCount, device);
  return count;
}

/// What a block can have, its static variables included.
inline int most_shared_bytes(int device) {
  int bytes = 0;
  BOXLOSS_CALL(DeviceGetAttribute, &bytes, kMostSharedMemory, device);
  return bytes;
}

/// Makes a device current for as long as it lives.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    BOXLOSS_CALL(GetDevice, &before_);
    changed_ = before_ != device;
    if (changed_) BOXLOSS_CALL(SetDevice, device);
  }
  ~DeviceScope() {
    if (changed_) (void)BOXLOSS_VENDOR(SetDevice)(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

#if defined(__CUDACC__) || defined(__HIPCC__)
/// Allows a kernel that many bytes of dynamic shared memory for each block. All launches of a
/// kernel ask for the same number, so that launches by other threads do not matter.
template <class... Params>
void allow_shared([[maybe_unused]] void (*kernel)(Params...), [[maybe_unused]] int bytes) {
#if !defined(BOXLOSS_HIP)
  BOXLOSS_CALL(FuncSetAttribute, reinterpret_cast<const void*>(kernel),
               cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
#endif
}

/// Launches with dynamic shared memory.
template <class... Params, class... Args>
void launch_with_shared(void (*kernel)(Params...), const char* name, unsigned blocks,
                        unsigned threads, int shared_bytes, Stream stream, const Args&... args) {
  kernel<<<blocks, threads, static_cast<std::size_t>(shared_bytes), stream>>>(args...);
  check(BOXLOSS_VENDOR(GetLastError)(), name);
}

template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const char* name, unsigned blocks, unsigned threads,
            Stream stream, const Args&... args) {
  launch_with_shared(kernel, name, blocks, threads, 0, stream, args...);
}

/// The block's dynamic shared memory, 16-byte aligned.
__device__ inline std::byte* dynamic_shared_memory() {
  extern __shared__ uint4 boxloss_shared_memory[];
  return reinterpret_cast<std::byte*>(boxloss_shared_memory);
}

/// The value of the thread `lanes` further, within groups of kLanes = 32.
template <class T>
__device__ T shuffle_down(T value, int lanes) {
#if defined(__HIP_PLATFORM_AMD__)
  return __shfl_down(value, lanes, 32);
#else
  return __shfl_down_sync(0xffffffffu, value, lanes);
#endif
}

/// The least value of the group, in each of its threads.
__device__ inline unsigned least_of_lanes(unsigned value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_min_sync(0xffffffffu, value);
#else
  for (int lanes = 16; lanes > 0; lanes /= 2) {
#if defined(__HIP_PLATFORM_AMD__)
    const unsigned other = __shfl_xor(value, lanes, 32);
#else
    const unsigned other = __shfl_xor_sync(0xffffffffu, value, lanes);
#endif
    if (other < value) value = other;
  }
  return value;
#endif
}

/// In which threads of the group the condition holds: a bit of each.
__device__ inline unsigned lanes_where(bool condition) {
#if defined(__HIP_PLATFORM_AMD__)
  return static_cast<unsigned>(__ballot(condition) >> (__lane_id() & 32));
#else
  return __ballot_sync(0xffffffffu, condition);
#endif
}

__device__ inline unsigned first_lane(unsigned lanes) {
  return static_cast<unsigned>(__ffs(static_cast<int>(lanes)) - 1);
}

/// Marks device code outside the fast paths: a call, as BOXLOSS_HOST_DEVICE_CALL is. A kernel's
/// parameter that such a call gets by reference is not copied if it is a grid constant.
#if defined(BOXLOSS_HIP)
#define BOXLOSS_DEVICE_CALL __device__
#define BOXLOSS_GRID_CONSTANT
#else
#define BOXLOSS_DEVICE_CALL __device__ __noinline__
#define BOXLOSS_GRID_CONSTANT __grid_constant__
#endif

#if !defined(BOXLOSS_HIP) && CUDART_VERSION >= 12060
#define BOXLOSS_HAS_CLUSTERS
#endif

/// The group's threads wait for each other, and see what they have written.
__device__ inline void sync_lanes() {
#if defined(__HIP_PLATFORM_AMD__)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#else
  __syncwarp();
#endif
}

/// Gives the value before. HIP's atomicCAS does not take 16 bits.
template <class Bits>
__device__ Bits compare_and_swap(Bits* address, Bits expected, Bits desired) {
#if defined(__HIP_PLATFORM_AMD__)
  __hip_atomic_compare_exchange_strong(address, &expected, desired, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  return expected;
#else
  return atomicCAS(address, expected, desired);
#endif
}

/// Adds with acquire and release: the thread's earlier writes are visible to whoever sees the sum,
/// and others' writes before their addition are visible after it. Separate fences on either side
/// would cost several times as much.
__device__ inline unsigned long long add_acquire_release(unsigned long long* address,
                                                         unsigned long long value) {
#if defined(__HIP_PLATFORM_AMD__)
  return __hip_atomic_fetch_add(address, value, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
#else
  unsigned long long before;
  asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(address), "l"(value)
               : "memory");
  return before;
#endif
}
#endif

}  // namespace boxloss::BOXLOSS_GPU
