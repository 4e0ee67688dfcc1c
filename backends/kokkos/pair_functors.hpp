// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include "pairs/flat_groups.hpp"
#include "pairs/image_parts.hpp"

template <>
struct Kokkos::reduction_identity<boxloss::Partial> {
  KOKKOS_FORCEINLINE_FUNCTION static constexpr boxloss::Partial sum() { return {0, 0}; }
};

/// The loops over pairs, for any formula, pairing and dtypes, in the same two shapes as in
/// backends/cuda: flat, a thread taking groups of neighbouring boxes, and strided, vector lanes
/// taking part of one image. Partial sums go to the caller's workspace, and a second launch adds
/// them in order: Kokkos' own reductions over all teams would use memory of the instance, which
/// captured launches that run at the same time would share.
namespace boxloss::kokkos {

/// The shape of a team.
template <class Space>
constexpr bool kIsHost =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Space::memory_space>::accessible;
template <class Space>
constexpr int kTeamThreads = kIsHost<Space> ? 1 : 256;
template <class Space>
constexpr int kLanes = kIsHost<Space> ? 1 : 32;

template <class Space>
using Policy =
    Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<256, 1>, Kokkos::IndexType<std::int64_t>>;
template <class Space>
using Team = typename Policy<Space>::member_type;

/// Units of work are dealt out to teams in batches of kBatch, in turn. The unit that a team takes
/// as its i-th.
template <int kBatch, class Team>
KOKKOS_INLINE_FUNCTION std::int64_t unit_of(const Team& team, std::int64_t i) {
  return (i / kBatch * team.league_size() + team.league_rank()) * kBatch + i % kBatch;
}

/// How many indices i a team has to go through; the last ones may be no units.
template <int kBatch, class Team>
KOKKOS_INLINE_FUNCTION std::int64_t units_of_team(const Team& team, std::int64_t units) {
  const std::int64_t batches = (units + kBatch - 1) / kBatch;
  return (batches + team.league_size() - 1 - team.league_rank()) / team.league_size() * kBatch;
}

/// What every forward functor ends with.
template <class Team, class C>
KOKKOS_INLINE_FUNCTION void finish_team(const Team& team, const ForwardArgs<C>& args,
                                        const LossOutputs<C>& outputs, Partial* partials,
                                        const Partial& sum) {
  Kokkos::single(Kokkos::PerTeam(team), [&] {
    if (args.losses == nullptr) {
      partials[team.league_rank()] = sum;
    } else if (team.league_rank() == 0) {
      *outputs.scale = C(1);
    }
  });
}

template <class Space, class Formula, class P, class T, class C, class Pairing, bool kPlain>
struct ForwardFlat {
  ForwardArgs<C> args;
  FlatBoxes<P, T> boxes;
  Pairing pairing;
  LossOutputs<C> outputs;
  Partial* partials;

  static constexpr int kThreads = kTeamThreads<Space>;
  static constexpr int kBoxes = kGroup<P, T>;
  static constexpr int kGroups = kUnroll<kBoxes, Pairing>;
  static constexpr int kStride = kThreads * kBoxes;
  static constexpr std::int64_t kTile = kStride * kGroups;

  /// One for each thread of a full tile, then one for each box behind the last of those.
  static std::int64_t units(std::int64_t slots) { return slots / kTile * kThreads + slots % kTile; }

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    const std::int64_t tiles = args.slots / kTile;
    const std::int64_t units = tiles * kThreads + (args.slots - tiles * kTile);
    Partial total{0, 0};
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, units_of_team<kThreads>(team, units)),
        [&](std::int64_t i, Partial& sum) {
          const std::int64_t unit = unit_of<kThreads>(team, i);
          if (unit < tiles * kThreads) {
            const std::int64_t first = unit / kThreads * kTile + unit % kThreads * kBoxes;
            sum += forward_groups<Formula, kPlain, kBoxes, kGroups>(args, boxes, pairing, first,
                                                                    kStride);
          } else if (unit < units) {
            const std::int64_t box = tiles * kTile + (unit - tiles * kThreads);
            sum += forward_groups<Formula, kPlain, 1, 1>(args, boxes, pairing, box, 0);
          }
        },
        total);
    finish_team(team, args, outputs, partials, total);
  }
};

template <class Formula, class P, class T, class C, class Pairing, bool kPlain>
struct BackwardFlat {
  BackwardArgs<P, T, C> args;
  FlatBoxes<P, T> boxes;
  Pairing pairing;

  static constexpr int kBoxes = kBackwardGroup<P, T>;

  static std::int64_t units(std::int64_t slots) { return (slots + kBoxes - 1) / kBoxes; }

  KOKKOS_FUNCTION void operator()(std::int64_t unit) const {
    const std::int64_t first = unit * kBoxes;
    if (first + kBoxes <= args.slots) {
      backward_group<Formula, kPlain, kBoxes>(args, boxes, pairing, first);
    } else {
      for (std::int64_t box = first; box < args.slots; ++box) {
        backward_group<Formula, kPlain, 1>(args, boxes, pairing, box);
      }
    }
  }
};

/// Parts of images, one for each thread of a team, its vector lanes sharing the slots.
template <class Space>
constexpr int kPartsPerTeam = kTeamThreads<Space> / kLanes<Space>;

template <class Space, class Formula, class P, class T, class C, class Pairing>
struct ForwardStrided {
  ForwardArgs<C> args;
  StridedPair<P, T> boxes;
  Pairing pairing;
  LossOutputs<C> outputs;
  Partial* partials;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    constexpr int kParts = kPartsPerTeam<Space>;
    const std::int64_t parts = args.images * parts_of_image(args.slots);
    Partial total{0, 0};
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, units_of_team<kParts>(team, parts)),
        [&](std::int64_t i, Partial& sum) {
          const std::int64_t index = unit_of<kParts>(team, i);
          if (index >= parts) return;
          const ImagePart part = image_part(index, args.slots);
          const ImageSlots image = pairing.image(part.image);
          const std::int64_t stop = image.count < part.end ? image.count : part.end;
          Partial own{0, 0};
          Kokkos::parallel_reduce(
              Kokkos::ThreadVectorRange(team, part.begin, stop > part.begin ? stop : part.begin),
              [&](std::int64_t j, Partial& lane) {
                lane += forward_slot<Formula>(args, boxes, pairing, part.image, image, j);
              },
              own);
          sum += own;
          if (args.losses == nullptr) return;
          for_uncounted_rows(pairing, part, image, [&](std::int64_t first, std::int64_t end) {
            Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, first, end > first ? end : first),
                                 [&](std::int64_t row) { args.losses[row] = 0; });
          });
        },
        total);
    finish_team(team, args, outputs, partials, total);
  }
};

template <class Space, class Formula, class P, class T, class C, class Pairing>
struct BackwardStrided {
  BackwardArgs<P, T, C> args;
  StridedPair<P, T> boxes;
  Pairing pairing;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    constexpr int kParts = kPartsPerTeam<Space>;
    const std::int64_t parts = args.images * parts_of_image(args.slots);
    const C scale = *args.scale;
    Kokkos::parallel_for(
        Kokkos::TeamThreadRange(team, units_of_team<kParts>(team, parts)), [&](std::int64_t i) {
          const std::int64_t index = unit_of<kParts>(team, i);
          if (index >= parts) return;
          const ImagePart part = image_part(index, args.slots);
          const ImageSlots image = pairing.image(part.image);
          Kokkos::parallel_for(
              Kokkos::ThreadVectorRange(team, part.begin, part.end), [&](std::int64_t j) {
                backward_slot<Formula>(args, boxes, pairing, scale, part.image, image, j);
              });
          if (!writes_rows(args)) return;
          for_uncounted_rows(pairing, part, image, [&](std::int64_t first, std::int64_t end) {
            Kokkos::parallel_for(
                Kokkos::ThreadVectorRange(team, first, end > first ? end : first),
                [&](std::int64_t row) { set_row_gradients(args, row, Gradients<C>{}); });
          });
        });
  }
};

/// The sum of all teams' sums, by one team.
template <class Space, class C>
struct AddPartials {
  const Partial* partials;
  std::int64_t count;
  LossOutputs<C> outputs;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    Partial total{0, 0};
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count),
        [&](std::int64_t i, Partial& sum) { sum += partials[i]; }, total);
    Kokkos::single(Kokkos::PerTeam(team), [&] { outputs.write(total); });
  }
};

}  // namespace boxloss::kokkos
