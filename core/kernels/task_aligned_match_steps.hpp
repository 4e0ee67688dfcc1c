// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "highest_ranks.hpp"

/// The task-aligned match in up to four launches. A team for each box tells its candidates which
/// overlap they have, and chooses; a thread for each anchor finds whose it is; a team for each box
/// drops what it may not keep; a thread for each anchor writes its score. Threads meet only in
/// atomic maxima, and in sums that are exact, of integers: the result has the same bits every time.
namespace boxloss {

/// How many boxes chose an anchor, in the high half, and the sum of these boxes' numbers, in the
/// low half. If only one box did, the sum is its number.
using Choosers = unsigned long long;

/// The highest metric and the highest overlap among a box's anchors, as bits, which are in the same
/// order as the numbers.
struct MostBits {
  unsigned metric, overlap;
};

/// The workspace, 0 at first.
struct MatchWork {
  Rank* best;          ///< (images, anchors): the overlap that is highest, and its box
  Choosers* choosers;  ///< (images, anchors)
  MostBits* most;      ///< (rows)
};

template <class Atomics>
BOXLOSS_HOST_DEVICE void raise(const MatchWork& work, std::int64_t row, const Match& match) {
  Atomics::max(&work.most[row].metric, bit_cast<unsigned>(match.metric));
  Atomics::max(&work.most[row].overlap, bit_cast<unsigned>(match.overlap));
}

/// What a team shares while its box chooses.
struct Choosing {
  RankCollection highest;
  bool are_in_order;
};

/// A team for each box.
template <class Atomics, class Team, class B>
BOXLOSS_HOST_DEVICE void choose_anchors(const Team& team, Choosing& shared,
                                        const TaskAlignedArgs<B>& a, const MatchWork& work) {
  if (!a.is_padded() && !are_in_order(team, shared.are_in_order, a.offsets, a.images, a.rows)) {
    return;
  }
  BOXLOSS_NO_UNROLL
  for (std::int64_t row = team.number(); row < a.rows; row += team.count()) {
    const std::int64_t image = image_of_row(a, row);
    const BoxRows own = rows_of_image(a, image);
    const std::int64_t box = row - own.first;
    if (box < 0 || box >= own.count) continue;
    const TargetBox<B> target = target_box(a, row);
    if (target.label < 0) continue;
    const auto rank_at = [&](unsigned anchor, bool is_first_pass) -> Rank {
      if (!is_inside(point_at(a, image, anchor), target)) return 0;
      const Match match = match_of(a, image, anchor, target);
      if (is_first_pass && match.overlap > 0) {
        Atomics::max(&work.best[image * a.anchors + anchor], rank_of(match.overlap, box));
      }
      return match.counts() ? rank_of(match.metric, anchor) : 0;
    };
    const auto choose = [&](Rank rank) {
      Atomics::add(&work.choosers[image * a.anchors + place_of(rank)],
                   (Choosers{1} << 32) + static_cast<Choosers>(box));
    };
    for_highest<Atomics>(team, shared.highest, static_cast<unsigned>(a.anchors), a.topk, rank_at,
                         choose);
  }
}

/// For each anchor of all images. Writes the metric where the score will be.
template <class Atomics, class B>
BOXLOSS_HOST_DEVICE void find_owner(const TaskAlignedArgs<B>& a, const MatchWork& work,
                                    std::int64_t at) {
  const Choosers choosers = work.choosers[at];
  const std::int64_t image = at / a.anchors, anchor = at - image * a.anchors;
  std::int64_t row = -1;
  Match match = {0, 0};
  if (choosers != 0) {
    const bool is_one = choosers >> 32 == 1;
    const Rank best = work.best[at];
    const unsigned told = best != 0 ? place_of(best) : 0;
    const auto target_of = [&](std::int64_t box) { return target_box(a, box); };
    const auto take = [&](std::int64_t taken) {
      row = taken;
      const TargetBox<B> target = target_of(row);
      if (is_inside(point_at(a, image, anchor), target)) {
        match = match_of(a, image, anchor, target);
      }
    };
    take(rows_of_image(a, image).first + (is_one ? static_cast<unsigned>(choosers) : told));
    // `best` does not show that a score is NaN, nor overlaps of 0. Both are rare.
    if (!is_one && (best == 0 || match.metric != match.metric)) {
      take(most_overlapping(a, image, anchor, target_of));
    }
    if (!match.counts()) {
      row = -1;
      match = {0, 0};
    }
  }
  set_owner(a, at, row, match);
  if (row >= 0 && a.topk2 == 0) raise<Atomics>(work, row, match);
}

/// A team for each box, whose best topk2 anchors stay.
template <class Atomics, class Team, class B>
BOXLOSS_HOST_DEVICE void drop_others(const Team& team, RankCollection& highest,
                                     const TaskAlignedArgs<B>& a, const MatchWork& work) {
  BOXLOSS_NO_UNROLL
  for (std::int64_t row = team.number(); row < a.rows; row += team.count()) {
    const std::int64_t first = image_of_row(a, row) * a.anchors;
    const auto rank_at = [&](unsigned anchor, bool) -> Rank {
      const std::int64_t at = first + anchor;
      return a.target_index.indices()[at] == row ? rank_of(a.score[at], anchor) : 0;
    };
    const auto keep = [&](Rank rank) {
      const std::int64_t at = first + place_of(rank);
      raise<Atomics>(work, row, {a.score[at], a.overlap[at]});
    };
    const auto anchors = static_cast<unsigned>(a.anchors);
    const Rank lowest = for_highest<Atomics>(team, highest, anchors, a.topk2, rank_at, keep);
    const auto threads = static_cast<unsigned>(team.threads());
    for (auto anchor = static_cast<unsigned>(team.thread()); anchor < anchors; anchor += threads) {
      const Rank rank = rank_at(anchor, false);
      if (rank != 0 && rank < lowest) set_owner(a, first + anchor, -1, {0, 0});
    }
  }
}

/// For each anchor of all images.
template <class B>
BOXLOSS_HOST_DEVICE void write_score(const TaskAlignedArgs<B>& a, const MatchWork& work,
                                     std::int64_t at) {
  const std::int64_t row = a.target_index.indices()[at];
  if (row < 0) return;
  const MostBits most = work.most[row];
  a.score[at] =
      normalized(a.score[at], {bit_cast<float>(most.metric), bit_cast<float>(most.overlap)});
}

}  // namespace boxloss
