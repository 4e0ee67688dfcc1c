// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>
#include <type_traits>

#include "atomics.hpp"
#include "box_loss/shared_rows.hpp"
#include "kernels/box_loss/atomic_boxes.hpp"
#include "kernels/box_loss/flat_groups.hpp"
#include "kernels/box_loss/image_parts.hpp"
#include "set_sums.hpp"

template <int kSums>
struct Kokkos::reduction_identity<boxloss::Partial<kSums>>
    : boxloss::kokkos::SumFromZero<boxloss::Partial<kSums>> {};

/// The loops over pairs, for any formula, pairing and dtypes, of the same two kinds as in
/// backends/gpu: flat, a thread taking groups of neighbouring boxes, and strided, a group of lanes
/// taking part of one image's slots.
namespace boxloss::kokkos {

/// Deals out work in batches, a piece for each thread of a team. On a GPU they are dealt out in
/// turn; on the host, where a batch is a piece of a cache line, each team gets neighbours.
template <class Space>
struct Deal {
  std::int64_t batches_each;
  int teams_with_one_more;

  /// Calls use(batch, thread) for each piece of the team's work.
  template <class Use>
  KOKKOS_FUNCTION void for_each(const Team<Space>& team, const Use& use) const {
    const int rank = team.league_rank();
    const std::int64_t batches = batches_each + (rank < teams_with_one_more ? 1 : 0);
    const std::int64_t before =
        rank * batches_each + (rank < teams_with_one_more ? rank : teams_with_one_more);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, batches * kThreads<Space>),
                         [&](std::int64_t i) {
                           const std::int64_t turn = i / kThreads<Space>;
                           use(kIsHost<Space> ? before + turn : turn * team.league_size() + rank,
                               static_cast<int>(i % kThreads<Space>));
                         });
  }
};

/// The end of every forward functor. The set has `teams` consecutive teams.
template <class Team, class Sum, class C>
KOKKOS_FUNCTION void finish_set(const Team& team, const TeamReducer<Sum, ReducedLoss<C>>& reducer,
                                bool is_reduced, const Sum& own, std::int64_t set,
                                std::int64_t sets, int teams) {
  if (is_reduced) {
    reducer.reduce(team, own, set, sets, teams);
  } else if (team.league_rank() % teams == 0) {
    Kokkos::single(Kokkos::PerTeam(team), [&] { reducer.outputs.scale[set] = C(1); });
  }
}

/// Without sets.
template <class Team, class Sum, class C>
KOKKOS_FUNCTION void finish(const Team& team, const TeamReducer<Sum, ReducedLoss<C>>& reducer,
                            bool is_reduced, const Sum& own) {
  finish_set(team, reducer, is_reduced, own, 0, 1, team.league_size());
}

// ---- flat ------------------------------------------------------------------------------------

template <class Space, class F, class P, class T, class C, class Pairing, bool kPlain>
struct ForwardFlat {
  ForwardArgs<F, C> args;
  FlatBoxes<P, T> boxes;
  Pairing pairing;
  TeamReducer<LossPartial, ReducedLoss<C>> reducer;
  Deal<Space> tiles;

  static constexpr int kBoxes = kGroup<P, T>;
  static constexpr int kGroups = kUnroll<kBoxes, Pairing>;
  static constexpr int kStride = kThreads<Space> * kBoxes;
  static constexpr std::int64_t kTile = kStride * kGroups;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    LossPartial own{};
    tiles.for_each(team, [&](std::int64_t tile, int thread) {
      own += forward_groups<kPlain, kBoxes, kGroups>(args, boxes, pairing,
                                                     tile * kTile + thread * kBoxes, kStride);
    });
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, kThreads<Space>), [&](int thread) {
      const std::int64_t behind_tiles = args.slots / kTile * kTile;
      std::int64_t box = behind_tiles + team.league_rank() * kThreads<Space> + thread;
      for (; box < args.slots; box += team.league_size() * kThreads<Space>) {
        own += forward_groups<kPlain, 1, 1>(args, boxes, pairing, box, 0);
      }
    });
    finish(team, reducer, args.losses == nullptr, own);
  }
};

template <class F, class P, class T, class C, class Pairing, bool kPlain>
struct BackwardFlat {
  BackwardArgs<F, P, T, C> args;
  FlatBoxes<P, T> boxes;
  Pairing pairing;

  KOKKOS_FUNCTION void operator()(std::int64_t group) const {
    backward_boxes<kPlain>(args, boxes, pairing, group);
  }
};

// ---- strided ---------------------------------------------------------------------------------

template <class Space, class F, class P, class T, class C, class Pairing>
struct ForwardStrided {
  ForwardArgs<F, C> args;
  StridedPair<P, T> boxes;
  Pairing pairing;
  TeamReducer<LossesPartial, ReducedLoss<C>> reducer;
  Deal<Space> deal;

  static constexpr int kParts = kThreads<Space> / kLanes<Space>;  // in a batch

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    const std::int64_t parts = parts_of(args);
    LossesPartial own{};
    deal.for_each(team, [&](std::int64_t batch, int thread) {
      const std::int64_t index = batch * kParts + thread / kLanes<Space>;
      if (index >= parts) return;
      forward_part(args, boxes, pairing, image_part(args, index), thread % kLanes<Space>,
                   kLanes<Space>, own);
    });
    finish(team, reducer, args.losses == nullptr, own);
  }
};

/// Unit u is lane u % kLanes of part u / kLanes.
template <class Space, class F, class P, class T, class C, class Pairing>
struct BackwardStrided {
  BackwardArgs<F, P, T, C> args;
  StridedPair<P, T> boxes;
  Pairing pairing;

  KOKKOS_FUNCTION void operator()(std::int64_t unit) const {
    backward_part(args, boxes, pairing, *args.scale, image_part(args, unit / kLanes<Space>),
                  static_cast<int>(unit % kLanes<Space>), kLanes<Space>);
  }
};

// ---- indexed ---------------------------------------------------------------------------------

template <class Space, class F, class P, class T, class C>
struct ForwardIndexed {
  ForwardArgs<F, C> args;
  IndexedPairs<P, T> pairs;
  TeamReducer<LossesPartial, ReducedLoss<C>> reducer;
  SetTeams teams;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    const std::int64_t stride = static_cast<std::int64_t>(teams.of_set) * kThreads<Space>;
    for (std::int64_t set = teams.first_set(team.league_rank()); set < pairs.sets;
         set += teams.sets_at_once) {
      LossesPartial own{};
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, kThreads<Space>), [&](int thread) {
        std::int64_t k = std::int64_t{teams.part(team.league_rank())} * kThreads<Space> + thread;
        for (; k < pairs.of_set; k += stride)
          own += forward_pair(args, pairs, set * pairs.of_set + k);
      });
      finish_set(team, reducer, args.losses == nullptr, own, set, pairs.sets, teams.of_set);
    }
  }
};

/// On a GPU: a thread takes a pair.
template <class F, class P, class T, class C>
struct BackwardIndexed {
  BackwardArgs<F, P, T, C> args;
  IndexedPairs<P, T> pairs;

  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    backward_pair(args, pairs, k, AtomicAdd<Atomics>());
  }
};

/// On the host: a thread takes rows.
template <class F, class P, class T, class C>
struct BackwardSharedRows {
  BackwardArgs<F, P, T, C> args;
  IndexedPairs<P, T> pairs;
  BackwardTasks tasks;

  void operator()(std::int64_t task) const { run_backward_task(args, pairs, tasks, task); }
};

}  // namespace boxloss::kokkos
