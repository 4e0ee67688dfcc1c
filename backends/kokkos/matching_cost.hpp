// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "call.hpp"
#include "dispatch/matching_cost.hpp"
#include "operations.hpp"

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

template <class Space, class F, class C>
void launch(const Space& space, const CostArgs<F, C>& args) {
  launch_units("boxloss::matching_cost", space, args.blocks * args.queries * kLanes<Space>,
               MatchingCost<Space, F, C>{args});
}

template <class Space>
template <class Problem>
void Operations<Space>::matching_cost(const Problem& p, float* cost, const Execution& execution) {
  call<Space>("boxloss::matching_cost", execution, [&](const Space& space) {
    dispatch(
        p, cost, [&](void* data, std::size_t bytes) { zero(space, data, bytes); },
        [&](auto compute) { launch(space, cost_args<decltype(compute)>(p, cost)); });
  });
}

}  // namespace boxloss::kokkos
