// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include "pair_workspace.hpp"
#include "pairs/flat_groups.hpp"
#include "pairs/image_parts.hpp"

template <>
struct Kokkos::reduction_identity<boxloss::Partial> {
  KOKKOS_FORCEINLINE_FUNCTION static constexpr boxloss::Partial sum() { return {0, 0}; }
};

/// The loops over pairs, for any formula, pairing and dtypes, in the same two shapes as in
/// backends/cuda: flat, a thread taking groups of neighbouring boxes, and strided, a group of lanes
/// taking part of one image's slots. Each team leaves its sum in the caller's workspace, and the
/// last one to arrive adds them in order. Kokkos' own reductions over all teams would use memory of
/// the instance, which captured launches that run at the same time would share.
namespace boxloss::kokkos {

template <class Space>
constexpr bool kIsHost =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Space::memory_space>::accessible;

constexpr int kDeviceThreads = 256;
/// Threads of a team: neighbours on a GPU, one at a time on the host.
template <class Space>
constexpr int kThreads = kIsHost<Space> ? 1 : kDeviceThreads;
/// Threads that share a part of an image.
template <class Space>
constexpr int kLanes = kIsHost<Space> ? 1 : 32;

template <class Space>
using TeamPolicy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<kDeviceThreads, 1>>;
template <class Space>
using Team = typename TeamPolicy<Space>::member_type;

/// Units of work, one for each thread, come in batches of a team's size, which are dealt out to the
/// teams in turn.
template <class Space>
struct Deal {
  std::int64_t batches_each;
  int teams_with_one_more;

  KOKKOS_FUNCTION std::int64_t units_of(const Team<Space>& team) const {
    const int one_more = team.league_rank() < teams_with_one_more ? 1 : 0;
    return (batches_each + one_more) * kThreads<Space>;
  }
  /// The unit that a team takes as its i-th.
  KOKKOS_FUNCTION static std::int64_t unit(const Team<Space>& team, std::int64_t i) {
    const std::int64_t batch = i / kThreads<Space> * team.league_size() + team.league_rank();
    return batch * kThreads<Space> + i % kThreads<Space>;
  }
};

/// How the teams' sums become one.
template <class C>
struct TeamReducer {
  LossOutputs<C> outputs;
  Partial* partials;  ///< one for each team
  Counter* arrivals;  ///< zero between launches

  /// What every forward functor ends with.
  template <class Team>
  KOKKOS_FUNCTION void finish(const Team& team, bool is_reduced, Partial own) const {
    if (is_reduced) {
      reduce(team, own);
    } else if (team.league_rank() == 0) {
      Kokkos::single(Kokkos::PerTeam(team), [&] { *outputs.scale = C(1); });
    }
  }

 private:
  template <class Team>
  KOKKOS_FUNCTION void reduce(const Team& team, Partial own) const {
    team.team_reduce(Kokkos::Sum<Partial>(own));
    int is_last = 0;
    Kokkos::single(
        Kokkos::PerTeam(team),
        [&](int& last) {
          partials[team.league_rank()] = own;
          Kokkos::memory_fence();
          last = Kokkos::atomic_fetch_add(arrivals, 1) == team.league_size() - 1 ? 1 : 0;
          Kokkos::memory_fence();
        },
        is_last);
    if (is_last == 0) return;

    Partial total{0, 0};
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, team.league_size()),
        [&](int i, Partial& sum) { sum += partials[i]; }, Kokkos::Sum<Partial>(total));
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      outputs.write(total);
      *arrivals = 0;
    });
  }
};

// ---- flat ------------------------------------------------------------------------------------

template <class Space, class Formula, class P, class T, class C, class Pairing, bool kPlain>
struct ForwardFlat {
  ForwardArgs<C> args;
  FlatBoxes<P, T> boxes;
  Pairing pairing;
  TeamReducer<C> reducer;
  Deal<Space> tiles;

  static constexpr int kBoxes = kGroup<P, T>;
  static constexpr int kGroups = kUnroll<kBoxes, Pairing>;
  static constexpr int kStride = kThreads<Space> * kBoxes;
  static constexpr std::int64_t kTile = kStride * kGroups;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    Partial own{0, 0};
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tiles.units_of(team)), [&](std::int64_t i) {
      const std::int64_t unit = tiles.unit(team, i);
      const std::int64_t first = unit / kThreads<Space> * kTile + unit % kThreads<Space> * kBoxes;
      own += forward_groups<Formula, kPlain, kBoxes, kGroups>(args, boxes, pairing, first, kStride);
    });
    if (team.league_rank() == team.league_size() - 1) {
      const std::int64_t behind_tiles = args.slots / kTile * kTile;
      Kokkos::parallel_for(
          Kokkos::TeamThreadRange(team, behind_tiles, args.slots), [&](std::int64_t box) {
            own += forward_groups<Formula, kPlain, 1, 1>(args, boxes, pairing, box, 0);
          });
    }
    reducer.finish(team, args.losses == nullptr, own);
  }
};

template <class Formula, class P, class T, class C, class Pairing, bool kPlain>
struct BackwardFlat {
  BackwardArgs<P, T, C> args;
  FlatBoxes<P, T> boxes;
  Pairing pairing;

  static constexpr int kBoxes = kBackwardGroup<P, T>;

  KOKKOS_FUNCTION void operator()(std::int64_t group) const {
    const std::int64_t first = group * kBoxes;
    if (first + kBoxes <= args.slots) {
      backward_group<Formula, kPlain, kBoxes>(args, boxes, pairing, first);
    } else {
      for (std::int64_t box = first; box < args.slots; ++box) {
        backward_group<Formula, kPlain, 1>(args, boxes, pairing, box);
      }
    }
  }
};

// ---- strided: unit u is lane u % kLanes of part u / kLanes
// -----------------------------------------

template <class Space, class Formula, class P, class T, class C, class Pairing>
struct ForwardStrided {
  ForwardArgs<C> args;
  StridedPair<P, T> boxes;
  Pairing pairing;
  TeamReducer<C> reducer;
  Deal<Space> lanes;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    const std::int64_t units = args.images * parts_of_image(args.slots) * kLanes<Space>;
    Partial own{0, 0};
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, lanes.units_of(team)), [&](std::int64_t i) {
      const std::int64_t unit = lanes.unit(team, i);
      if (unit >= units) return;
      const ImagePart part = image_part(unit / kLanes<Space>, args.slots);
      const int lane = unit % kLanes<Space>;
      const ImageSlots image = pairing.image(part.image);
      const std::int64_t stop = image.count < part.end ? image.count : part.end;
      for (std::int64_t j = part.begin + lane; j < stop; j += kLanes<Space>) {
        own += forward_slot<Formula>(args, boxes, pairing, part.image, image, j);
      }
      if (args.losses == nullptr) return;
      for_uncounted_rows(pairing, part, image, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t row = first + lane; row < end; row += kLanes<Space>) {
          args.losses[row] = 0;
        }
      });
    });
    reducer.finish(team, args.losses == nullptr, own);
  }
};

template <class Space, class Formula, class P, class T, class C, class Pairing>
struct BackwardStrided {
  BackwardArgs<P, T, C> args;
  StridedPair<P, T> boxes;
  Pairing pairing;

  KOKKOS_FUNCTION void operator()(std::int64_t unit) const {
    const ImagePart part = image_part(unit / kLanes<Space>, args.slots);
    const int lane = unit % kLanes<Space>;
    const ImageSlots image = pairing.image(part.image);
    const C scale = *args.scale;
    for (std::int64_t j = part.begin + lane; j < part.end; j += kLanes<Space>) {
      backward_slot<Formula>(args, boxes, pairing, scale, part.image, image, j);
    }
    if (!writes_rows(args)) return;
    for_uncounted_rows(pairing, part, image, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t row = first + lane; row < end; row += kLanes<Space>) {
        set_row_gradients(args, row, Gradients<C>{});
      }
    });
  }
};

}  // namespace boxloss::kokkos
