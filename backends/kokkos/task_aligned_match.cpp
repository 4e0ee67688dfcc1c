// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "dispatch/task_aligned_match.hpp"

#include "atomics.hpp"
#include "call.hpp"
#include "kernels/task_aligned_match_steps.hpp"
#include "operations.hpp"

/// The launches of core/kernels/task_aligned_match_steps.hpp.
namespace boxloss::kokkos {
namespace {

template <class B>
struct Choose {
  using Shared = Choosing;
  TaskAlignedArgs<B> args;
  MatchWork work;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team, Shared& shared) const {
    choose_anchors<Atomics>(team, shared, args, work);
  }
};

template <class B>
struct FindOwner {
  TaskAlignedArgs<B> args;
  MatchWork work;

  KOKKOS_FUNCTION void operator()(std::int64_t at) const { find_owner<Atomics>(args, work, at); }
};

template <class B>
struct Drop {
  using Shared = RankCollection;
  TaskAlignedArgs<B> args;
  MatchWork work;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team, Shared& shared) const {
    drop_others<Atomics>(team, shared, args, work);
  }
};

template <class B>
struct WriteScore {
  TaskAlignedArgs<B> args;
  MatchWork work;

  KOKKOS_FUNCTION void operator()(std::int64_t at) const { write_score(args, work, at); }
};

}  // namespace

std::size_t Workspaces::workspace_bytes(const TaskAlignedProblem& p) { return match_work_bytes(p); }

template <class Space>
void Operations<Space>::task_aligned_match(const TaskAlignedProblem& p,
                                           const TaskAlignedOutputs& outputs,
                                           const Execution& execution) {
  constexpr const char* kName = "boxloss::task_aligned_match";
  call<Space>(kName, execution, [&](const Space& space) {
    const auto fill_bytes = [&](void* data, int byte, std::size_t bytes) {
      fill(space, data, byte, bytes);
    };
    dispatch(p, outputs, fill_bytes, [&](auto box) {
      using B = decltype(box);
      const TaskAlignedArgs<B> args = task_aligned_args<B>(p, outputs);
      const MatchWork work = match_work(p, execution.workspace);
      const std::int64_t anchors = args.images * args.anchors;
      fill(space, execution.workspace, 0, match_work_bytes(p));
      launch_body(kName, space, args.rows, Choose<B>{args, work});
      launch_units(kName, space, anchors, FindOwner<B>{args, work});
      if (args.topk2 > 0) launch_body(kName, space, args.rows, Drop<B>{args, work});
      launch_units(kName, space, anchors, WriteScore<B>{args, work});
    });
  });
}

template void Operations<HostSpace>::task_aligned_match(const TaskAlignedProblem&,
                                                        const TaskAlignedOutputs&,
                                                        const Execution&);
#if defined(BOXLOSS_KOKKOS_DEVICE)
template void Operations<DeviceSpace>::task_aligned_match(const TaskAlignedProblem&,
                                                          const TaskAlignedOutputs&,
                                                          const Execution&);
void warm_up_task_aligned_match(const DeviceSpace& space) { launch_nothing(space); }
#endif

}  // namespace boxloss::kokkos
