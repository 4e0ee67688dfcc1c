// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dispatch/matching_cost.hpp"
#include "launch.hpp"

/// The matcher's cost: unit u is lane u % kLanes of query u / kLanes, with the queries of all
/// blocks numbered consecutively.
namespace boxloss::kokkos {

template <class Space, class F, class C>
struct MatchingCost {
  CostArgs<F, C> args;

  KOKKOS_FUNCTION void operator()(std::int64_t unit) const {
    const std::int64_t row = unit / kLanes<Space>;
    cost_row(args, row / args.queries, row % args.queries, static_cast<int>(unit % kLanes<Space>),
             kLanes<Space>);
  }
};

template <class Space>
void matching_cost(const Space& space, const CostProblem& p, float* cost) {
  dispatch(
      p, cost, [&](void* data, std::size_t bytes) { zero(space, data, bytes); },
      [&](auto compute) {
        using Functor = MatchingCost<Space, AnyFormula, decltype(compute)>;
        const auto args = cost_args<decltype(compute)>(AnyFormula{p.loss}, p, cost);
        launch_units("boxloss::matching_cost", space, args.blocks * args.queries * kLanes<Space>,
                     Functor{args});
      });
}

}  // namespace boxloss::kokkos
