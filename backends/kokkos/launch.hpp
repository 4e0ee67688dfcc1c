// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>
#include <algorithm>
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

/// A team of that many threads, as core/kernels/team.hpp has it.
template <class Space, int kCount = kThreads<Space>>
class KokkosTeam {
 public:
  using Member = typename Kokkos::TeamPolicy<Space>::member_type;

  explicit KOKKOS_FUNCTION KokkosTeam(const Member& member) : member_(member) {}

  KOKKOS_FUNCTION int thread() const {
    if constexpr (kIsHost<Space>) {
      return 0;
    } else {
      return member_.team_rank();
    }
  }
  static KOKKOS_FUNCTION constexpr int threads() { return kCount; }
  KOKKOS_FUNCTION int number() const { return member_.league_rank(); }
  KOKKOS_FUNCTION int count() const { return member_.league_size(); }
  KOKKOS_FUNCTION void sync() const {
    if constexpr (!kIsHost<Space>) member_.team_barrier();
  }

 protected:
  const Member& member_;
};

/// Runs a body for teams, which takes a team and what the team shares, a Body::Shared.
template <class Space, class Body>
struct TeamBody {
  Body body;

  KOKKOS_FUNCTION void operator()(const typename KokkosTeam<Space>::Member& member) const {
    using Shared = typename Body::Shared;
    if constexpr (kIsHost<Space>) {
      Shared shared;
      body(KokkosTeam<Space>(member), shared);
    } else {
      void* const shared = member.team_scratch(0).get_shmem(sizeof(Shared));
      body(KokkosTeam<Space>(member), *static_cast<Shared*>(shared));
    }
  }
};

/// Sets each byte; null is left out.
template <class Space>
void fill([[maybe_unused]] const Space& space, void* data, int byte, std::size_t bytes) {
  if (data == nullptr || bytes == 0) return;
  if constexpr (kIsHost<Space>) {
    std::memset(data, byte, bytes);  // deep_copy would start the threads for it
  } else {
    using Bytes = Kokkos::View<char*, typename Space::memory_space, Kokkos::MemoryUnmanaged>;
    Kokkos::deep_copy(space, Bytes(static_cast<char*>(data), bytes), static_cast<char>(byte));
  }
}

template <class Space>
void zero(const Space& space, void* data, std::size_t bytes) {
  fill(space, data, 0, bytes);
}

/// Without the hint Kokkos copies kernel arguments beyond 512 bytes, functor and policy included,
/// through constant memory, and each launch then waits for the previous one.
template <class Policy, class Functor>
void launch(const char* name, const Policy& policy, const Functor& functor) {
  static_assert(sizeof(Functor) + sizeof(Policy) <= 4096 - 256);  // what a launch passes
  using Hint = Kokkos::Experimental::WorkItemProperty::HintLightWeight_t;
  Kokkos::parallel_for(name, Kokkos::Experimental::require(policy, Hint()), functor);
}

template <class Space, class Functor>
void launch_units(const char* name, const Space& space, std::int64_t units,
                  const Functor& functor) {
  using Units = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  launch(name, Units(space, 0, units), functor);
}

template <class Space>
using TeamsPolicy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<kDeviceThreads>>;

/// That many teams, or fewer: what they run goes on by team.count().
template <class Space>
TeamsPolicy<Space> teams_policy(const Space& space, std::int64_t teams, int threads) {
  constexpr std::int64_t kMostTeams = 1 << 20;
  return {space, static_cast<int>(std::min(teams, kMostTeams)), threads};
}

/// Runs a body for them.
template <class Space, class Body>
void launch_body(const char* name, const Space& space, std::int64_t teams, const Body& body) {
  static_assert(alignof(typename Body::Shared) <= 8);  // what team_scratch gives
  auto policy = teams_policy(space, teams, kThreads<Space>);
  if constexpr (!kIsHost<Space>) {
    policy.set_scratch_size(0, Kokkos::PerTeam(sizeof(typename Body::Shared)));
  }
  launch(name, policy, TeamBody<Space, Body>{body});
}

}  // namespace boxloss::kokkos
