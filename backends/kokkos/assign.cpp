// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "dispatch/assign.hpp"

#include "call.hpp"
#include "kernels/assign_steps.hpp"
#include "kernels/team.hpp"
#include "operations.hpp"

/// core/kernels/assign_steps.hpp, a team for each task.
namespace boxloss::kokkos {
namespace {

/// A team of core/kernels/assign_paths.hpp.
template <class Space, int kCount>
class AssignTeam : public KokkosTeam<Space, kCount> {
 public:
  static constexpr bool kIsCluster = false;
  static constexpr unsigned kAtOnce = 2;

  using KokkosTeam<Space, kCount>::KokkosTeam;

  KOKKOS_FUNCTION unsigned first() const { return static_cast<unsigned>(this->thread()); }
  static KOKKOS_FUNCTION constexpr unsigned further() { return kCount; }
  static KOKKOS_FUNCTION bool all(bool is_so) { return is_so; }
  KOKKOS_FUNCTION AssignTeam of_any_size() const { return *this; }

  template <class Number>
  KOKKOS_FUNCTION Candidate<Number> least(Candidate<Number> own, int) const {
    if constexpr (!kIsHost<Space>) {
      this->sync();
      this->member_.team_reduce(Kokkos::Min<Candidate<Number>>(own));
    }
    return own;
  }
};

/// What a team shares, with the paths' memory behind it.
struct alignas(8) AssignFlags {
  bool are_offsets_right, are_all_finite;
};

template <class Space, int kCount, class E>
struct AssignTasks {
  AssignArgs<E> args;
  std::byte* workspace;
  int bytes;  ///< of the paths' memory

  KOKKOS_FUNCTION void operator()(const typename KokkosTeam<Space>::Member& member) const {
    const std::size_t size = sizeof(AssignFlags) + static_cast<std::size_t>(bytes);
    auto* const scratch = static_cast<std::byte*>(member.team_scratch(0).get_shmem(size));
    auto& flags = *reinterpret_cast<AssignFlags*>(scratch);
    AssignTeam<Space, kCount> team(member);
    const bool are_right =
        args.offsets.data == nullptr ||
        are_in_order(team, flags.are_offsets_right, args.offsets, args.images, args.columns);
    for (std::int64_t i = team.number(); i < args.tasks(); i += team.count()) {
      assign_at(team, args, i, are_right, scratch + sizeof(AssignFlags), bytes, workspace,
                flags.are_all_finite);
    }
  }
};

template <int kCount, class Space, class E>
void launch_by(const Space& space, const AssignProblem& p, const AssignArgs<E>& args,
               void* workspace) {
  auto policy = teams_policy(space, args.tasks(), kCount);
  constexpr int kFlags = sizeof(AssignFlags);
  const int most = (policy.scratch_size_max(0) - kFlags) / 16 * 16;
  const int bytes = assign_shared_bytes<E>(p, most);
  policy.set_scratch_size(0, Kokkos::PerTeam(kFlags + bytes));
  launch("boxloss::assign", policy,
         AssignTasks<Space, kCount, E>{args, static_cast<std::byte*>(workspace), bytes});
}

}  // namespace

std::size_t Workspaces::workspace_bytes(const AssignProblem& p) { return assign_states_bytes(p); }

template <class Space>
void Operations<Space>::assign(const AssignProblem& p, const AssignOutputs& outputs,
                               const Execution& execution) {
  call<Space>("boxloss::assign", execution, [&](const Space& space) {
    const auto fill_bytes = [&](void* data, std::size_t bytes) { fill(space, data, 0xff, bytes); };
    dispatch(p, outputs, fill_bytes, [&](auto element) {
      const auto args = assign_args<decltype(element)>(p, outputs);
      if (usual_places(p) <= 2 * kLanes<Space>) {
        return launch_by<kLanes<Space>>(space, p, args, execution.workspace);
      }
      launch_by<kThreads<Space>>(space, p, args, execution.workspace);
    });
  });
}

template void Operations<HostSpace>::assign(const AssignProblem&, const AssignOutputs&,
                                            const Execution&);
#if defined(BOXLOSS_KOKKOS_DEVICE)
template void Operations<DeviceSpace>::assign(const AssignProblem&, const AssignOutputs&,
                                              const Execution&);
void warm_up_assign(const DeviceSpace& space) { launch_nothing(space); }
#endif

}  // namespace boxloss::kokkos
