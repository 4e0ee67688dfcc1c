// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/native/box_loss/tiles.hpp"
#include "pairings/grid.hpp"
#include "pairings/offsets.hpp"

/// Loops over the slots of images. They are divided into tasks of a fixed size whose partial sums
/// are added in order, so that the result does not depend on the number of threads.
namespace boxloss::native {

constexpr std::int64_t kSlotsPerTask = 8192;

inline std::int64_t tasks_for(std::int64_t slots) { return ceil_div(slots, kSlotsPerTask); }

inline std::int64_t slots_of(const PairProblem& p) { return p.pred.images * p.pred.slots; }

/// Calls run(image, slots) for the part of each image in a task.
template <class Run>
void for_each_image_part(const PairProblem& p, std::int64_t task, const Run& run) {
  const std::int64_t slots = p.pred.slots;
  std::int64_t at = task * kSlotsPerTask;
  const std::int64_t end = std::min(at + kSlotsPerTask, slots_of(p));
  while (at < end) {
    const std::int64_t b = at / slots;
    const std::int64_t begin = at - b * slots;
    const std::int64_t stop = std::min(slots, begin + end - at);
    run(b, RowRange{begin, stop});
    at += stop - begin;
  }
}

/// Calls `use` with each run of neighbours whose flag is not 0, as a part of `slots`; `flags`
/// begins at the first slot.
template <class Use>
void for_each_flagged_run(const std::uint8_t* flags, const RowRange& slots, const Use& use) {
  const std::int64_t count = slots.end - slots.begin;
  std::int64_t at = 0;
  while (at < count) {
    std::uint64_t eight;
    while (at + 8 <= count && (std::memcpy(&eight, flags + at, 8), eight == 0)) at += 8;
    while (at < count && flags[at] == 0) ++at;
    const std::int64_t begin = at;
    while (at < count && flags[at] != 0) ++at;
    if (begin < at) use(RowRange{slots.begin + begin, slots.begin + at});
  }
}

/// Loops over a problem's slots, in either pass.
template <class C, class Tile>
class SlotLoop {
 public:
  using Problem = typename Tile::Problem;

  SlotLoop(const Problem& p, Tile& tile) : p_(p), tile_(tile) {}

  template <class Pairing>
  void run(const Pairing& pairing, std::int64_t task) {
    for_each_image_part(p_, task, [&](std::int64_t b, const RowRange& slots) {
      const ImageSlots image = pairing.image(b);
      std::int64_t done = slots.begin;
      for_each_counted_run(pairing, b, image, {slots.begin, std::min(slots.end, image.count)},
                           [&](const RowRange& counted) {
                             zero(pairing, b, image, {done, counted.begin});
                             add(b, image, counted);
                             done = counted.end;
                           });
      zero(pairing, b, image, {done, slots.end});
      zero_rows_without_slot(pairing, b, image, slots);
    });
    list_.take(tile_);
  }

 private:
  /// Shorter runs of neighbours share a tile with others.
  static constexpr std::int64_t kFewest = 32;

  template <class Pairing, class Use>
  void for_each_counted_run(const Pairing&, std::int64_t, const ImageSlots&, const RowRange& slots,
                            const Use& use) {
    if (slots.begin < slots.end) use(slots);
  }

  template <class Use>
  void for_each_counted_run(const Mask& pairing, std::int64_t, const ImageSlots& image,
                            const RowRange& slots, const Use& use) {
    for_each_flagged_run(pairing.mask + image.row + slots.begin, slots, use);
  }

  template <class Use>
  void for_each_counted_run(const ZeroPadded&, std::int64_t b, const ImageSlots&,
                            const RowRange& slots, const Use& use) {
    for (std::int64_t at = slots.begin; at < slots.end; at += Tile::kPairs) {
      const RowRange some{at, std::min<std::int64_t>(at + Tile::kPairs, slots.end)};
      const int count = static_cast<int>(some.end - some.begin);
      const std::int64_t first = b * p_.target.image_stride + at * p_.target.slot_stride;
      std::uint8_t flags[Tile::kPairs];
      box_code<C, Problem>().find_padding(
          tile_.read_targets({first, p_.target.slot_stride, nullptr}, count), count, flags);
      for_each_flagged_run(flags, some, use);
    }
  }

  /// A run of neighbouring valid slots.
  void add(std::int64_t b, const ImageSlots& image, RowRange slots) {
    const BoxView &pred = p_.pred, &target = p_.target;
    PairPlace place{b * pred.image_stride + slots.begin * pred.slot_stride,
                    b * target.image_stride + (image.target + slots.begin) * target.slot_stride,
                    b * pred.slots + slots.begin, image.row + slots.begin, b};
    std::int64_t left = slots.end - slots.begin;
    const auto advance = [&](std::int64_t by) {
      place.pred += by * pred.slot_stride;
      place.target += by * target.slot_stride;
      place.gradient_row += by;
      place.row += by;
      left -= by;
    };
    while (left >= kFewest) {
      const int count = static_cast<int>(std::min<std::int64_t>(left, kTilePairs));
      tile_(Pairs{count,
                  {place.pred, pred.slot_stride, nullptr},
                  {place.target, target.slot_stride, nullptr},
                  {place.gradient_row, 1, nullptr},
                  {place.row, 1, nullptr},
                  {place.image, 0, nullptr}});
      advance(count);
    }
    while (left > 0) {
      if (list_.is_full()) list_.take(tile_);
      list_.add(place);
      advance(1);
    }
  }

  /// Invalid slots, and those of their rows that belong to the image.
  template <class Pairing>
  void zero(const Pairing& pairing, std::int64_t b, const ImageSlots& image,
            const RowRange& slots) {
    const std::int64_t pred_row = b * p_.pred.slots;
    tile_.zero_pred_rows({pred_row + slots.begin, pred_row + slots.end});
    const std::int64_t end = pairing.rows(b).end;
    tile_.zero_rows({image.row + slots.begin, std::min(image.row + slots.end, end)});
  }

  /// With offsets, an image may have rows before its first slot's, and behind its last one's.
  template <class Pairing>
  void zero_rows_without_slot(const Pairing& pairing, std::int64_t b, const ImageSlots& image,
                              const RowRange& slots) {
    const RowRange rows = pairing.rows(b);
    if (slots.begin == 0) tile_.zero_rows({rows.begin, image.row});
    if (slots.end == p_.pred.slots) tile_.zero_rows({image.row + slots.end, rows.end});
  }

  const Problem& p_;
  Tile& tile_;
  PairList list_;
};

/// Adds up the `parts_of_set` partial sums of each set.
template <class C>
void write_totals(const PairProblem& p, const LossOutputs& outputs, const LossesPartial* partials,
                  std::int64_t parts_of_set) {
  const ReducedLoss<C> reduced = reduced_loss<C>(p, outputs);
  for (std::int64_t set = 0; set < loss_sets(p); ++set) {
    if (p.reduction == Reduction::kNone) {
      reduced.scale[set] = 1;
      continue;
    }
    LossesPartial total{};
    for (std::int64_t part = 0; part < parts_of_set; ++part) {
      total += partials[set * parts_of_set + part];
    }
    reduced.write(total, set);
  }
}

/// A rough measure of forward's work, in valid pairs. Slots that are not valid take little.
inline std::int64_t forward_work(const PairProblem& p, const Grid&) { return slots_of(p); }
inline std::int64_t forward_work(const PairProblem& p, const Mask&) { return slots_of(p) / 8; }
inline std::int64_t forward_work(const PairProblem& p, const Lengths& pairing) {
  std::int64_t work = 0;
  for (std::int64_t b = 0; b < p.pred.images; ++b) work += 4 + pairing.image(b).count;
  return work;
}
inline std::int64_t forward_work(const PairProblem& p, const Offsets& pairing) {
  return 4 * p.pred.images + std::min(pairing.target_rows, slots_of(p));
}

template <class C, class Problem, class Pairing>
void forward(const Problem& p, const Pairing& pairing, const LossOutputs& outputs,
             const Execution& execution) {
  auto* const partials = static_cast<LossesPartial*>(execution.workspace);
  const bool is_reduced = p.reduction != Reduction::kNone;
  const std::int64_t parts = tasks_for(slots_of(p));
  // Parts with little work are put together in one task, since waking a thread takes a while.
  const std::int64_t tasks =
      std::clamp<std::int64_t>(tasks_for(forward_work(p, pairing)), 1, parts);
  execution.parallel_for(tasks, [&](std::int64_t task) {
    const RowRange own = share_of({0, parts}, task, tasks);
    for (std::int64_t part = own.begin; part < own.end; ++part) {
      TileForward<C, Problem> tile(p, outputs);
      SlotLoop<C, TileForward<C, Problem>>(p, tile).run(pairing, part);
      if (is_reduced) partials[part] = tile.sum;
    }
  });
  write_totals<C>(p, outputs, partials, parts);
}

template <class C, class Problem, class Pairing>
void backward(const Problem& p, const Pairing& pairing, const GradOutputs& grads, const void* scale,
              const LossGradients& gradients, const Execution& execution) {
  execution.parallel_for(tasks_for(slots_of(p)), [&](std::int64_t task) {
    TileBackward<C, Problem> tile(p, grads, scale, gradients);
    SlotLoop<C, TileBackward<C, Problem>>(p, tile).run(pairing, task);
  });
}

}  // namespace boxloss::native
