// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <type_traits>

#include "box_loss/pair_functors.hpp"
#include "call.hpp"
#include "dispatch/box_loss.hpp"
#include "operations.hpp"
#include "workspace.hpp"

/// Dispatches a problem to Kokkos.
namespace boxloss::kokkos {

/// Deals batches of units out to teams; make_functor(deal) gives their work.
template <class Space, class MakeFunctor>
void launch_teams(const char* name, const Space& space, std::int64_t batches,
                  const MakeFunctor& make_functor) {
  const int teams = static_cast<int>(std::clamp<std::int64_t>(batches, 1, most_teams(space)));
  const Deal<Space> deal{batches / teams, static_cast<int>(batches % teams)};
  launch(name, TeamPolicy<Space>(space, teams, kThreads<Space>), make_functor(deal));
}

template <class P, class T, class C, class Space, class Problem, class Pairing>
void launch_forward(const Space& space, const Problem& p, const Pairing& pairing,
                    const LossOutputs& outputs, const Execution& execution) {
  const bool is_reduced = p.reduction != Reduction::kNone;
  const auto reducer_of = [&](auto sum) {
    return make_reducer<decltype(sum)>(space, reduced_loss<C>(p, outputs), execution, is_reduced);
  };
  if constexpr (kIsFlat<Pairing> && !std::is_same_v<P, Any>) {
    if (is_flat_forward<P, T>(p, outputs)) {
      return with_flat_formula<P, T>(p.loss, is_plain(p), [&](auto formula, auto plain) {
        using Functor = ForwardFlat<Space, decltype(formula), P, T, C, Pairing, plain>;
        launch_teams("boxloss::forward_flat", space, p.pred.slots / Functor::kTile,
                     [&](const Deal<Space>& tiles) {
                       return Functor{forward_args<C>(formula, p, outputs), flat_boxes<P, T>(p),
                                      pairing, reducer_of(LossPartial()), tiles};
                     });
      });
    }
  }
  using Functor = ForwardStrided<Space, decltype(any_formula(p)), P, T, C, Pairing>;
  const std::int64_t batches = ceil_div(parts_of(p), Functor::kParts);
  launch_teams("boxloss::forward_strided", space, batches, [&](const Deal<Space>& deal) {
    return Functor{forward_args<C>(any_formula(p), p, outputs), strided_pair<P, T>(p), pairing,
                   reducer_of(LossesPartial()), deal};
  });
}

/// How many of a set's pairs one team takes: more than one for each of its threads.
template <class Space>
constexpr std::int64_t kPairsOfTeam = kIsHost<Space> ? 4096 : 2 * kDeviceThreads;

template <class P, class T, class C, class Space, class Problem>
void launch_forward(const Space& space, const Problem& p, const Indexed& pairing,
                    const LossOutputs& outputs, const Execution& execution) {
  const SetTeams teams =
      set_teams(space, pairing.sets, ceil_div(pairing.pairs, kPairsOfTeam<Space>));
  const bool shares_sums = p.reduction != Reduction::kNone && teams.of_set > 1;
  const ForwardIndexed<Space, decltype(any_formula(p)), P, T, C> functor{
      forward_args<C>(any_formula(p), p, outputs), indexed_pairs<P, T>(p, pairing),
      make_reducer<LossesPartial>(space, reduced_loss<C>(p, outputs), execution, shares_sums),
      teams};
  const TeamPolicy<Space> policy(space, teams.count(), kThreads<Space>);
  launch("boxloss::forward_indexed", policy, functor);
}

template <class P, class T, class C, class Space, class Problem, class Pairing>
void launch_backward(const Space& space, const Problem& p, const Pairing& pairing,
                     const GradOutputs& grads, const void* scale, const LossGradients& gradients) {
  const auto args = [&](auto formula) {
    return backward_args<P, T, C>(formula, p, grads, scale, gradients);
  };
  if constexpr (kIsFlat<Pairing> && !std::is_same_v<P, Any>) {
    if (is_flat_backward<P, T>(p, grads, gradients)) {
      constexpr int kBoxes = kBackwardGroup<P, T>;
      const std::int64_t groups = ceil_div(p.pred.slots, kBoxes);
      return with_flat_formula<P, T>(p.loss, is_plain(p, gradients), [&](auto formula, auto plain) {
        using Functor = BackwardFlat<decltype(formula), P, T, C, Pairing, plain>;
        launch_units("boxloss::backward_flat", space, groups,
                     Functor{args(formula), flat_boxes<P, T>(p), pairing});
      });
    }
  }
  using Functor = BackwardStrided<Space, decltype(any_formula(p)), P, T, C, Pairing>;
  launch_units("boxloss::backward_strided", space, parts_of(p) * kLanes<Space>,
               Functor{args(any_formula(p)), strided_pair<P, T>(p), pairing});
}

template <class P, class T, class C, class Space, class Problem>
void launch_backward(const Space& space, const Problem& p, const Indexed& pairing,
                     const GradOutputs& grads, const void* scale, const LossGradients& gradients) {
  const auto args = backward_args<P, T, C>(any_formula(p), p, grads, scale, gradients);
  const IndexedPairs<P, T> pairs = indexed_pairs<P, T>(p, pairing);
  if constexpr (kIsHost<Space>) {
    const BackwardTasks tasks = backward_tasks(p, gradients);
    launch_units("boxloss::backward_indexed", space, tasks.count(),
                 BackwardSharedRows<decltype(any_formula(p)), P, T, C>{args, pairs, tasks});
  } else {
    zero_shared_rows(p, gradients,
                     [&](void* data, std::size_t bytes) { zero(space, data, bytes); });
    launch_units("boxloss::backward_indexed", space, pairing.sets * pairing.pairs,
                 BackwardIndexed<decltype(any_formula(p)), P, T, C>{args, pairs});
  }
}

/// launch(space, dtypes, pairing) for a pass of a problem.
template <class Space, class Problem, class Written, class Launch>
void run(const char* name, const Problem& p, const Written& outputs, const Execution& execution,
         const Launch& launch) {
  call<Space>(name, execution, [&](const Space& space) {
    dispatch(
        p, outputs, [&](void* data, std::size_t bytes) { zero(space, data, bytes); },
        [&](auto dtypes, const auto& pairing) { launch(space, dtypes, pairing); });
  });
}

template <class Space>
template <class Problem>
void Operations<Space>::forward(const Problem& p, const LossOutputs& outputs,
                                const Execution& execution) {
  run<Space>("boxloss::forward", p, outputs, execution,
             [&](const Space& space, auto dtypes, const auto& pairing) {
               using D = decltype(dtypes);
               launch_forward<typename D::Pred, typename D::Target, typename D::Compute>(
                   space, p, pairing, outputs, execution);
             });
}

template <class Space>
template <class Problem>
void Operations<Space>::backward(const Problem& p, const GradOutputs& grads, const void* scale,
                                 const LossGradients& gradients, const Execution& execution) {
  run<Space>("boxloss::backward", p, gradients, execution,
             [&](const Space& space, auto dtypes, const auto& pairing) {
               using D = decltype(dtypes);
               launch_backward<typename D::Pred, typename D::Target, typename D::Compute>(
                   space, p, pairing, grads, scale, gradients);
             });
}

}  // namespace boxloss::kokkos
