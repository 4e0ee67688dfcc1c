// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/registry.hpp>
#include <cstring>

#include "cpu/native/box_reader.hpp"
#include "cpu/operations.hpp"
#include "dispatch/max_iou_match.hpp"

/// Max-IoU matching in vector loops over a tile of anchors, with one of its image's boxes after the
/// other; blocks of the tile that a box does not overlap are skipped by their bounds. What low
/// quality changes is found from each box's best IoU in each tile, so that only tiles where it is
/// the box's best of all are looked at again.
namespace boxloss::native {
namespace {

/// The tiles of a task.
constexpr std::int64_t kTilesOfTask = 8;

/// A box's best IoU of all, and the first tile that has it.
template <class C>
struct BestOfBox {
  C iou;
  std::int64_t tile;
};

template <class B>
struct Memory {
  using C = typename B::Value;

  MatchBox<B>* boxes;  ///< (T)
  BestOfBox<C>* best;  ///< (T)
  C* of_tiles;         ///< (tiles, T): each box's best IoU in each tile
};

std::int64_t tiles_of(const MaxIouProblem& p) { return ceil_div(p.anchors.slots, kTilePairs); }

template <class B, class C = typename B::Value>
std::size_t bytes(const MaxIouProblem& p) {
  const auto boxes = static_cast<std::size_t>(p.target.slots);
  const auto tiles = static_cast<std::size_t>(tiles_of(p));
  return boxes * (sizeof(BestOfBox<C>) + sizeof(MatchBox<B>) + tiles * sizeof(C));
}

template <class C>
const AnchorCode<Box<C>>& anchor_code(Box<C>) {
  return vector_code<C>().anchors;
}
template <class C>
const AnchorCode<RotatedBox<C>>& anchor_code(RotatedBox<C>) {
  return vector_code<C>().rotated.anchors;
}

template <class B>
class Matching {
  using C = typename B::Value;

 public:
  Matching(const MaxIouProblem& p, const MaxIouArgs<C>& args, const Execution& execution)
      : p_(p),
        a_(args),
        code_(anchor_code(B())),
        execution_(execution),
        are_offsets_right_(are_in_order(a_.offsets, a_.images, a_.boxes)) {
    memory_.best = static_cast<BestOfBox<C>*>(execution.workspace);
    memory_.boxes = reinterpret_cast<MatchBox<B>*>(memory_.best + a_.boxes);
    memory_.of_tiles = reinterpret_cast<C*>(memory_.boxes + a_.boxes);
  }

  void run() {
    for (std::int64_t t = 0; t < a_.boxes; ++t) {
      memory_.boxes[t] = match_box_at<B>(a_.target, a_.angle_unit, 0, t);
    }
    for_each_tile([this](Tile& tile, std::int64_t image) { match(tile, image); });
    if (a_.low_quality == LowQuality::kNone || !are_offsets_right_) return;
    execution_.parallel_for(a_.images, [this](std::int64_t image) {
      for_own(image, [this](std::int64_t t) { find_best(t); });
    });
    if (a_.low_quality == LowQuality::kForce) {
      execution_.parallel_for(a_.images, [this](std::int64_t image) { force(image); });
    } else {
      for_each_tile([this](Tile& tile, std::int64_t image) { match_low_quality(tile, image); });
    }
  }

 private:
  using Number = BoxNumber<C>;
  static constexpr auto kNone = static_cast<Number>(kNoBox);

  /// Anchors that are read when they are needed, and what they get.
  struct Tile {
    Tile(const BoxView& view, AngleUnit unit) : reader(reader_of<B>(view, unit)) {}

    ReaderOfBoxes<B> reader;
    AnchorTile<B> anchors;
    Box<C> bounds;  ///< of all of them
    std::int64_t index = 0, image_read = -1;
    int count = 0;
    alignas(64) C ious[kTilePairs];
    alignas(64) Number numbers[kTilePairs];
    alignas(64) Number marks[kTilePairs];
  };

  /// Calls use(tile, image) for all.
  template <class Use>
  void for_each_tile(const Use& use) const {
    const std::int64_t tiles = tiles_of(p_);
    execution_.parallel_for(ceil_div(tiles, kTilesOfTask), [&](std::int64_t task) {
      Tile tile(p_.anchors, a_.angle_unit);
      const std::int64_t end = std::min((task + 1) * kTilesOfTask, tiles);
      for (std::int64_t i = task * kTilesOfTask; i < end; ++i) {
        set_index(tile, i);
        for (std::int64_t image = 0; image < a_.images; ++image) use(tile, image);
      }
    });
  }

  void set_index(Tile& tile, std::int64_t index) const {
    tile.index = index;
    tile.image_read = -1;
    tile.count =
        static_cast<int>(std::min<std::int64_t>(kTilePairs, a_.anchor_count - index * kTilePairs));
  }

  /// Images may share their anchors.
  void read(Tile& tile, std::int64_t image) const {
    if (tile.image_read == image || (tile.image_read >= 0 && a_.anchors.image_stride == 0)) return;
    const std::int64_t first = a_.anchors.element_of(image, tile.index * kTilePairs);
    const C* const boxes = tile.reader.read({first, a_.anchors.slot_stride, nullptr}, tile.count);
    code_.to_tile(tile.reader.for_formula(boxes, tile.count), tile.count, &tile.anchors);
    tile.bounds = tile.anchors.bounds[0];
    for (int b = 1; b < tile.anchors.blocks; ++b) {
      const Box<C>& more = tile.anchors.bounds[b];
      tile.bounds = {smaller(tile.bounds.x1, more.x1), smaller(tile.bounds.y1, more.y1),
                     larger(tile.bounds.x2, more.x2), larger(tile.bounds.y2, more.y2)};
    }
    tile.image_read = image;
  }

  /// Calls use(box) for each of an image's.
  template <class Use>
  void for_own(std::int64_t image, const Use& use) const {
    if (!are_offsets_right_) return;
    const std::int64_t end = a_.offsets[image + 1];
    for (std::int64_t t = a_.offsets[image]; t < end; ++t) use(t);
  }

  /// Each anchor's best box.
  void find_best(Tile& tile, std::int64_t image) const {
    read(tile, image);
    std::fill_n(tile.ious, kTilePairs, C(0));
    const bool has_boxes = are_offsets_right_ && a_.offsets[image] < a_.offsets[image + 1];
    const Number first = has_boxes ? static_cast<Number>(a_.offsets[image]) : kNone;
    std::fill_n(tile.numbers, kTilePairs, first);
    for_own(image, [&](std::int64_t t) {
      const MatchBox<B>& box = memory_.boxes[t];
      C& best = memory_.of_tiles[tile.index * a_.boxes + t];
      best = C(0);
      if (!can_overlap(extent_of(box), tile.bounds)) return;
      best = code_.match_with(box, static_cast<Number>(t), tile.anchors, tile.ious, tile.numbers);
    });
  }

  void match(Tile& tile, std::int64_t image) const {
    find_best(tile, image);
    const std::int64_t first = tile.index * kTilePairs;
    for (int i = 0; i < tile.count; ++i) {
      const auto row = static_cast<std::int64_t>(tile.numbers[i]);
      const std::int64_t match = row == kNoBox ? kNoBox : match_of(a_, tile.ious[i], row);
      write_match(a_, image, first + i, match, tile.ious[i]);
    }
  }

  void find_best(std::int64_t t) const {
    BestOfBox<C> best = {memory_.of_tiles[t], 0};
    const std::int64_t tiles = tiles_of(p_);
    for (std::int64_t i = 1; i < tiles; ++i) {
      const C iou = memory_.of_tiles[i * a_.boxes + t];
      if (is_better(iou, best.iou)) best = {iou, i};
    }
    memory_.best[t] = best;
  }

  /// Marks the anchors whose IoU with a box is the box's best of all.
  void mark(Tile& tile, std::int64_t image, std::int64_t t) const {
    const auto number = static_cast<Number>(t);
    const C best = memory_.best[t].iou;
    if (best == C(0)) {  // then all anchors have it
      std::fill_n(tile.marks, tile.count, number);
    } else {
      read(tile, image);
      code_.mark_best(memory_.boxes[t], best, number, tile.anchors, tile.marks);
    }
  }

  void match_low_quality(Tile& tile, std::int64_t image) const {
    bool has_marks = false;
    for_own(image, [&](std::int64_t t) {
      const C best = memory_.best[t].iou;
      if (!takes_low_quality(a_, best)) return;
      if (memory_.of_tiles[tile.index * a_.boxes + t] != best) return;
      if (!has_marks) std::fill_n(tile.marks, kTilePairs, kNone);
      has_marks = true;
      mark(tile, image, t);
    });
    if (!has_marks) return;
    const bool takes_argmax = a_.low_quality == LowQuality::kArgmax;
    if (takes_argmax) find_best(tile, image);
    const Number* const numbers = takes_argmax ? tile.numbers : tile.marks;
    for (int i = 0; i < tile.count; ++i) {
      if (tile.marks[i] == kNone) continue;
      set_match(image, tile.index * kTilePairs + i, static_cast<std::int64_t>(numbers[i]));
    }
  }

  /// Gives each of an image's boxes its first best anchor.
  void force(std::int64_t image) const {
    Tile tile(p_.anchors, a_.angle_unit);
    std::fill_n(tile.marks, kTilePairs, kNone);
    for_own(image, [&](std::int64_t t) {
      const BestOfBox<C>& best = memory_.best[t];
      if (!takes_low_quality(a_, best.iou)) return;
      set_index(tile, best.tile);
      mark(tile, image, t);
      const Number* const first =
          std::find(tile.marks, tile.marks + tile.count, static_cast<Number>(t));
      set_match(image, best.tile * kTilePairs + (first - tile.marks), t);
    });
  }

  void set_match(std::int64_t image, std::int64_t anchor, std::int64_t t) const {
    a_.target_index.set(image * a_.anchor_count + anchor, t);
  }

  const MaxIouProblem& p_;
  const MaxIouArgs<C>& a_;
  const AnchorCode<B>& code_;
  const Execution& execution_;
  const bool are_offsets_right_;
  Memory<B> memory_;
};

}  // namespace

std::size_t Operations::workspace_bytes(const MaxIouProblem& p) {
  std::size_t count = 0;
  with_boxes(p, [&](auto box) { count = bytes<decltype(box)>(p); });
  return count;
}

void Operations::max_iou_match(const MaxIouProblem& p, const MaxIouOutputs& outputs,
                               const Execution& execution) {
  cpu_capability();  // throws here, not in a thread
  const auto fill = [](void* data, int byte, std::size_t count) {
    if (data != nullptr) std::memset(data, byte, count);
  };
  dispatch(p, outputs, fill, [&](auto box) {
    using B = decltype(box);
    const auto args = max_iou_args<typename B::Value>(p, outputs);
    Matching<B>(p, args, execution).run();
  });
}

}  // namespace boxloss::native
