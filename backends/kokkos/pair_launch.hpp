// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

#include "kokkos_runtime.hpp"
#include "math/with_dtypes.hpp"
#include "pair_functors.hpp"
#include "pair_workspace.hpp"
#include "pairing/no_slots.hpp"

/// From a problem to Kokkos' dispatch.
namespace boxloss::kokkos {

/// On the host a number that does not depend on the threads, so that the sum does not either.
template <class Space>
std::int64_t most_teams(const Space& space) {
  if (kIsHost<Space>) return 256;
  return std::clamp<std::int64_t>(space.concurrency() / (2 * kTeamThreads<Space>), 1, kMaxTeams);
}

template <class Space>
int teams_for(std::int64_t units, int batch, std::int64_t most) {
  return static_cast<int>(std::clamp<std::int64_t>((units + batch - 1) / batch, 1, most));
}

/// Arguments of a kernel beyond this size, policy included, would go through constant memory, and
/// each launch would wait for the one before.
template <class Functor, class Policy>
void launch(const char* name, const Policy& policy, const Functor& functor) {
  static_assert(sizeof(Functor) + sizeof(Policy) <= 512 - 64);
  Kokkos::parallel_for(name, policy, functor);
}

template <class Space, class C>
void add_partials(const Space& space, const Partial* partials, int teams,
                  const LossOutputs<C>& outputs) {
  launch("boxloss::add_partials", Policy<Space>(space, 1, kTeamThreads<Space>),
         AddPartials<Space, C>{partials, teams, outputs});
}

template <class Formula, class P, class T, class C, class Space, class Pairing>
void launch_forward(const Space& space, const GiouLossProblem& p, const Pairing& pairing,
                    const GiouLossOutputs& outputs, Partial* partials) {
  const ForwardArgs<C> args = forward_args<C>(p, outputs);
  const LossOutputs<C> loss = loss_outputs<C>(p, outputs);
  const auto finish = [&](int teams) {
    if (args.losses == nullptr) add_partials(space, partials, teams, loss);
  };

  if constexpr (kIsFlat<Pairing> && !std::is_same_v<P, Any>) {
    constexpr int kBoxes = kGroup<P, T>;
    if (is_flat<P, kBoxes>(p.pred) && is_flat<T, kBoxes>(p.target)) {
      const auto run = [&](auto functor) {
        const int teams =
            teams_for<Space>(functor.units(p.pred.slots), functor.kThreads, most_teams(space));
        launch("boxloss::forward_flat", Policy<Space>(space, teams, functor.kThreads), functor);
        finish(teams);
      };
      if (is_plain(p)) {
        return run(ForwardFlat<Space, Formula, P, T, C, Pairing, true>{args, flat_boxes<P, T>(p),
                                                                       pairing, loss, partials});
      }
      return run(ForwardFlat<Space, Formula, P, T, C, Pairing, false>{args, flat_boxes<P, T>(p),
                                                                      pairing, loss, partials});
    }
  }
  const std::int64_t parts = p.pred.images * parts_of_image(p.pred.slots);
  const int teams = teams_for<Space>(parts, kPartsPerTeam<Space>, most_teams(space));
  launch("boxloss::forward_strided",
         Policy<Space>(space, teams, kPartsPerTeam<Space>, kLanes<Space>),
         ForwardStrided<Space, Formula, P, T, C, Pairing>{args, strided_pair<P, T>(p), pairing,
                                                          loss, partials});
  finish(teams);
}

template <class Formula, class P, class T, class C, class Space, class Pairing>
void launch_backward(const Space& space, const GiouLossProblem& p, const Pairing& pairing,
                     const GradView& grad_loss, const void* scale,
                     const GiouLossGradients& gradients) {
  const auto args = backward_args<P, T, C>(p, grad_loss, scale, gradients);

  if constexpr (kIsFlat<Pairing> && !std::is_same_v<P, Any>) {
    constexpr int kBoxes = kBackwardGroup<P, T>;
    if (is_flat<P, kBoxes>(p.pred) && is_flat<T, kBoxes>(p.target) &&
        is_aligned<P, 4 * kBoxes>(gradients.pred) && is_aligned<T, 4 * kBoxes>(gradients.target)) {
      const auto run = [&](auto functor) {
        using Units = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
        launch("boxloss::backward_flat", Units(space, 0, functor.units(p.pred.slots)), functor);
      };
      if (is_plain(p, gradients)) {
        return run(
            BackwardFlat<Formula, P, T, C, Pairing, true>{args, flat_boxes<P, T>(p), pairing});
      }
      return run(
          BackwardFlat<Formula, P, T, C, Pairing, false>{args, flat_boxes<P, T>(p), pairing});
    }
  }
  const std::int64_t parts = p.pred.images * parts_of_image(p.pred.slots);
  const int teams = teams_for<Space>(parts, kPartsPerTeam<Space>, std::numeric_limits<int>::max());
  launch("boxloss::backward_strided",
         Policy<Space>(space, teams, kPartsPerTeam<Space>, kLanes<Space>),
         BackwardStrided<Space, Formula, P, T, C, Pairing>{args, strided_pair<P, T>(p), pairing});
}

template <class Space>
void zero(const Space& space, void* data, std::size_t bytes) {
  if (data == nullptr || bytes == 0) return;
  using Bytes = Kokkos::View<char*, typename Space::memory_space, Kokkos::MemoryUnmanaged>;
  Kokkos::deep_copy(space, Bytes(static_cast<char*>(data), bytes), char(0));
}

/// Calls launch(dtypes, pairing); or, where there are no slots, zeroes the outputs.
template <class Space, class Written, class Launch>
void run(const Space& space, const GiouLossProblem& p, const Written& outputs,
         const Launch& launch) {
  if (!has_slots(p)) {
    return zero_outputs(p, outputs,
                        [&](void* data, std::size_t bytes) { zero(space, data, bytes); });
  }
  with_dtypes(p, [&](auto dtypes) {
    with_pairing(p, [&](const auto& pairing) { launch(dtypes, pairing); });
  });
}

template <class Formula, class Space>
void forward(const Space& space, const GiouLossProblem& p, const GiouLossOutputs& outputs,
             const Execution& execution) {
  run(space, p, outputs, [&](auto dtypes, const auto& pairing) {
    using D = decltype(dtypes);
    launch_forward<Formula, typename D::Pred, typename D::Target, typename D::Compute>(
        space, p, pairing, outputs, static_cast<Partial*>(execution.workspace));
  });
}

template <class Formula, class Space>
void backward(const Space& space, const GiouLossProblem& p, const GradView& grad_loss,
              const void* scale, const GiouLossGradients& gradients) {
  run(space, p, gradients, [&](auto dtypes, const auto& pairing) {
    using D = decltype(dtypes);
    launch_backward<Formula, typename D::Pred, typename D::Target, typename D::Compute>(
        space, p, pairing, grad_loss, scale, gradients);
  });
}

}  // namespace boxloss::kokkos
