// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "executor.hpp"

/// What the GPU source in backends/gpu needs of its platform, for a GPU that the host plays.
#define BOXLOSS_GPU gpu_on_host
#define BOXLOSS_DEVICE_CALL
#define BOXLOSS_GRID_CONSTANT

namespace boxloss::gpu_on_host {

struct StreamState {
  unsigned long long id;
  bool is_capturing;
};

/// Null is the default stream. All work is done when launch returns.
using Stream = const StreamState*;

constexpr int kFloatBlocks = 1;

constexpr const char* kName = "gpu_on_host";

std::vector<Implementation> implementations();

inline bool is_capturing(Stream stream) { return stream != nullptr && stream->is_capturing; }

inline unsigned long long stream_id(Stream stream) { return stream == nullptr ? 0 : stream->id; }

inline void fill_async(void* data, int byte, std::size_t bytes, Stream) {
  if (data == nullptr || bytes == 0) return;
  std::memset(data, byte, bytes);
}

inline void zero_async(void* data, std::size_t bytes, Stream stream) {
  fill_async(data, 0, bytes, stream);
}

template <class T>
T* address_of_symbol(const T& symbol) {
  return const_cast<T*>(&symbol);
}

/// Few processors, so that small problems already have several tiles for each block; but on that
/// device more blocks share a sum than a block has groups, or a group has lanes.
constexpr int kLargeDevice = 2;
inline int processor_count(int device) { return device == kLargeDevice ? 20 : 3; }

/// Little, so that small problems already have too much for it.
inline int most_shared_bytes(int) { return 10 << 10; }

struct DeviceScope {
  explicit DeviceScope(int) {}
};

template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const char* name, unsigned blocks, unsigned threads, Stream,
            const Args&... args) {
  run_grid(name, blocks, threads, [&] { kernel(args...); });
}

inline std::byte* shared_memory = nullptr;
inline std::byte* dynamic_shared_memory() { return shared_memory; }

template <class... Params>
void allow_shared(void (*)(Params...), int) {}

/// A block's memory is just as long, so that sanitizers see what lies behind it.
template <class... Params, class... Args>
void launch_with_shared(void (*kernel)(Params...), const char* name, unsigned blocks,
                        unsigned threads, int shared_bytes, Stream stream, const Args&... args) {
  const std::unique_ptr<std::byte[]> memory(new std::byte[static_cast<std::size_t>(shared_bytes)]);
  shared_memory = memory.get();
  launch(kernel, name, blocks, threads, stream, args...);
}

/// The value of the thread `lanes` further on, among groups of kLanes = 32.
template <class T>
T shuffle_down(T value, int lanes) {
  return shuffle_down(value, static_cast<unsigned>(lanes), 32);
}

inline unsigned least_of_lanes(unsigned value) { return least_of_lanes(value, 32); }

inline unsigned lanes_where(bool condition) {
  unsigned lanes = condition ? 1u << threadIdx.x % 32 : 0;
  for (int i = 16; i > 0; i /= 2) lanes |= shuffle_down(lanes, i);
  return least_of_lanes(threadIdx.x % 32 == 0 ? lanes : ~0u);
}

inline unsigned first_lane(unsigned lanes) { return static_cast<unsigned>(__builtin_ctz(lanes)); }

inline void sync_lanes() { least_of_lanes(0); }

inline unsigned long long add_acquire_release(unsigned long long* address,
                                              unsigned long long value) {
  const unsigned long long before = *address;
  *address += value;
  return before;
}

// Fibers of one thread take turns, but not within an addition.

template <class E>
E atomicAdd(E* address, E value) {
  const E before = *address;
  *address += value;
  return before;
}

template <class E>
void atomicMax(E* address, E value) {
  if (*address < value) *address = value;
}

template <class E>
void atomicMin(E* address, E value) {
  if (value < *address) *address = value;
}

template <class Bits>
Bits compare_and_swap(Bits* address, Bits expected, Bits desired) {
  const Bits before = *address;
  if (before == expected) *address = desired;
  return before;
}

}  // namespace boxloss::gpu_on_host
