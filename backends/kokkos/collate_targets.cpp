// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "dispatch/collate_targets.hpp"

#include "call.hpp"
#include "operations.hpp"

/// Ground truth as one list, by one team.
namespace boxloss::kokkos {
namespace {

struct CollateLists {
  using Shared = bool;
  CollateArgs args;
  TargetLists lists;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team, bool& has_fault) const {
    collate_lists(team, has_fault, args, lists);
  }
};

}  // namespace

template <class Space>
void Operations<Space>::collate_targets(const CollateProblem& p, const CollateOutputs& outputs,
                                        const Execution& execution) {
  constexpr const char* kName = "boxloss::collate_targets";
  call<Space>(kName, execution, [&](const Space& space) {
    collate_by(p, outputs, [&](const CollateArgs& args, const TargetLists& lists) {
      launch_body(kName, space, 1, CollateLists{args, lists});
    });
  });
}

template void Operations<HostSpace>::collate_targets(const CollateProblem&, const CollateOutputs&,
                                                     const Execution&);
#if defined(BOXLOSS_KOKKOS_DEVICE)
void warm_up_collate_targets(const DeviceSpace& space) { launch_nothing(space); }

template void Operations<DeviceSpace>::collate_targets(const CollateProblem&, const CollateOutputs&,
                                                       const Execution&);
#endif

}  // namespace boxloss::kokkos
