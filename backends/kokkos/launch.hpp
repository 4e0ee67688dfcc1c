// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

/// What the launches of all operations share.
namespace boxloss::kokkos {

template <class Space>
constexpr bool kIsHost = std::is_same_v<Space, Kokkos::DefaultHostExecutionSpace>;

constexpr int kDeviceThreads = 256;
/// The threads of a team: neighbouring ones on a GPU, a single one on the host.
template <class Space>
constexpr int kThreads = kIsHost<Space> ? 1 : kDeviceThreads;
/// Threads that share a part of an image.
template <class Space>
constexpr int kLanes = kIsHost<Space> ? 1 : 32;

template <class Space>
void zero([[maybe_unused]] const Space& space, void* data, std::size_t bytes) {
  if (data == nullptr || bytes == 0) return;
  if constexpr (kIsHost<Space>) {
    std::memset(data, 0, bytes);  // deep_copy would start the threads for it
  } else {
    using Bytes = Kokkos::View<char*, typename Space::memory_space, Kokkos::MemoryUnmanaged>;
    Kokkos::deep_copy(space, Bytes(static_cast<char*>(data), bytes), char(0));
  }
}

/// Kokkos copies kernel arguments beyond 512 bytes, functor and policy included, through constant
/// memory, and each launch then waits for the previous one.
template <class Policy, class Functor>
void launch(const char* name, const Policy& policy, const Functor& functor) {
  static_assert(sizeof(Functor) + sizeof(Policy) <= 512 - 64);
  Kokkos::parallel_for(name, policy, functor);
}

template <class Space, class Functor>
void launch_units(const char* name, const Space& space, std::int64_t units,
                  const Functor& functor) {
  using Units = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  launch(name, Units(space, 0, units), functor);
}

}  // namespace boxloss::kokkos
