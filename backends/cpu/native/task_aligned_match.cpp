// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/registry.hpp>
#include <cstring>
#include <functional>
#include <limits>

#include "cpu/native/box_reader.hpp"
#include "cpu/operations.hpp"
#include "dispatch/task_aligned_match.hpp"
#include "math/ceil_div.hpp"

/// The task-aligned match. Boxes choose, each by itself; then each anchor finds whose it is. An
/// anchor that several boxes chose asks all boxes of its image, which few anchors do.
///
/// Points are in runs of neighbours, which a box passes over where the run's bounds do not meet it.
/// Points of a list mostly lie side by side, and if they do not, it only takes longer.
namespace boxloss::native {
namespace {

constexpr int kRun = 32;  ///< points
constexpr std::int64_t kBoxesOfTask = 4;
constexpr std::int64_t kAnchorsOfTask = 2048;

/// An anchor's chooser, as the number of a box in its image.
constexpr std::int32_t kNobody = -1, kSeveral = -2;

/// The workspace.
template <class B>
struct Arrays {
  using C = typename B::Value;

  TargetBox<B>* targets;  ///< (rows)
  Match* most;            ///< (rows), of the box's anchors
  Rank* chosen;           ///< (rows, most_chosen), of anchors; 0 is none
  C *x, *y;               ///< (point lists, anchors)
  Box<C>* runs;           ///< (point lists, runs)
  std::int32_t* chooser;  ///< (images, anchors)

  std::int64_t most_chosen, point_lists, runs_of_list;
  std::size_t bytes;

  Arrays(const TaskAlignedArgs<B>& a, void* workspace) {
    most_chosen = std::max(a.topk, a.topk2);
    runs_of_list = ceil_div(a.anchors, kRun);
    point_lists = a.point_image_stride == 0 ? 1 : a.images;
    bytes = 0;
    const auto take = [&](auto*& array, std::int64_t count) {
      using T = std::decay_t<decltype(*array)>;
      array = reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + bytes);
      constexpr std::size_t kAlign = 16;
      bytes += ceil_div(static_cast<std::int64_t>(sizeof(T)) * count, kAlign) * kAlign;
    };
    take(targets, a.rows);
    take(most, a.rows);
    take(chosen, a.rows * most_chosen);
    take(x, point_lists * a.anchors);
    take(y, point_lists * a.anchors);
    take(runs, point_lists * runs_of_list);
    take(chooser, a.images * a.anchors);
  }
};

/// Keeps the best ranks that a heap was offered, the lowest in front. At first all are 0.
void offer(Rank* heap, std::int64_t most, Rank rank) {
  if (rank <= heap[0]) return;
  std::pop_heap(heap, heap + most, std::greater<>());
  heap[most - 1] = rank;
  std::push_heap(heap, heap + most, std::greater<>());
}

/// No point beyond these lies in the region.
template <class C>
Box<C> bounds_of(const Box<C>& region) {
  return region;
}

/// Rounding may turn the edges of a tiny box. Where the sine of the angle between them is at least
/// 0.999, a point inside lies beyond the rectangle by less than a tenth of both edges' lengths.
/// Where it is less, there are no bounds.
template <class C>
Box<C> bounds_of(const Rectangle<C>& r) {
  constexpr C kEndless = std::numeric_limits<C>::infinity();
  const C product = r.along_x * r.across_y - r.along_y * r.across_x;
  if (!(product * product > C(0.998) * r.along_square * r.across_square)) {
    return {-kEndless, -kEndless, kEndless, kEndless};
  }
  const C more = C(0.1) * (std::abs(r.along_x) + std::abs(r.along_y) + std::abs(r.across_x) +
                           std::abs(r.across_y));
  const C none = 0;
  return {r.x + std::min(r.along_x, none) + std::min(r.across_x, none) - more,
          r.y + std::min(r.along_y, none) + std::min(r.across_y, none) - more,
          r.x + std::max(r.along_x, none) + std::max(r.across_x, none) + more,
          r.y + std::max(r.along_y, none) + std::max(r.across_y, none) + more};
}

/// The losses of a box with each of `boxes`, as boxes are in a problem.
template <class C>
void losses_with(const Box<C>& box, const C* boxes, const Constants<C>& constants, int count,
                 C* losses) {
  const C one[4] = {box.x1, box.y1, box.x2, box.y2};
  vector_code<C>().losses_with(one, Loss::kCiou, boxes, constants, count, losses);
}
template <class C>
void losses_with(const RotatedBox<C>& box, const C* boxes, const Constants<C>& constants, int count,
                 C* losses) {
  const C one[5] = {box.cx, box.cy, box.w, box.h, box.angle};
  vector_code<C>().rotated.losses_with(one, RotatedLoss::kProbiou, boxes, constants, count, losses);
}

/// Reads the points of list `i`.
template <class B>
void read_points(const TaskAlignedArgs<B>& a, const Arrays<B>& w, std::int64_t i) {
  using C = typename B::Value;
  C *const x = w.x + i * a.anchors, *const y = w.y + i * a.anchors;
  for (std::int64_t first = 0; first < a.anchors; first += kRun) {
    const std::int64_t end = std::min(first + kRun, a.anchors);
    constexpr C kEndless = std::numeric_limits<C>::infinity();
    Box<C> run = {kEndless, kEndless, -kEndless, -kEndless};
    for (std::int64_t anchor = first; anchor < end; ++anchor) {
      const Point<C> point = point_at(a, i, anchor);
      x[anchor] = point.x;
      y[anchor] = point.y;
      // A NaN, which is in no box, is not in the bounds either.
      run = {std::min(run.x1, point.x), std::min(run.y1, point.y), std::max(run.x2, point.x),
             std::max(run.y2, point.y)};
    }
    w.runs[i * w.runs_of_list + first / kRun] = run;
  }
}

/// What one thread needs to let boxes choose.
template <class B>
class Chooser {
 public:
  Chooser(const TaskAlignedProblem& p, const TaskAlignedArgs<B>& a, const Arrays<B>& w)
      : a_(a), w_(w), preds_(reader_of<B>(p.pred, a.angle_unit)) {}

  void choose(std::int64_t image, std::int64_t row) {
    const TargetBox<B>& target = w_.targets[row] = target_box(a_, row);
    Rank* const chosen = w_.chosen + row * w_.most_chosen;
    std::fill_n(chosen, a_.topk, Rank{0});
    if (target.label < 0) return;
    for_candidates(image, target, [&](std::int64_t anchor, const Match& match) {
      if (match.counts()) offer(chosen, a_.topk, rank_of(match.metric, anchor));
    });
  }

 private:
  using C = typename B::Value;

  template <class Use>
  void for_candidates(std::int64_t image, const TargetBox<B>& target, const Use& use) {
    const std::int64_t list = a_.point_image_stride == 0 ? 0 : image;
    const C *const x = w_.x + list * a_.anchors, *const y = w_.y + list * a_.anchors;
    const Box<C>* const runs = w_.runs + list * w_.runs_of_list;
    const Box<C> box = bounds_of(target.region);
    count_ = 0;
    for (std::int64_t i = 0; i < w_.runs_of_list; ++i) {
      const Box<C>& run = runs[i];
      // A rotated box has its edges, and `more` may be lost to rounding.
      if (run.x2 < box.x1 || run.x1 > box.x2 || run.y2 < box.y1 || run.y1 > box.y2) continue;
      if (count_ > kTilePairs - kRun) take(image, target, use);
      const std::int64_t end = std::min((i + 1) * kRun, a_.anchors);
      for (std::int64_t anchor = i * kRun; anchor < end; ++anchor) {
        anchors_[count_] = anchor;
        count_ += is_inside(Point<C>{x[anchor], y[anchor]}, target) ? 1 : 0;
      }
    }
    take(image, target, use);
  }

  /// Calls use(anchor, match) for the anchors that were found, and forgets them.
  template <class Use>
  void take(std::int64_t image, const TargetBox<B>& target, const Use& use) {
    if (count_ == 0) return;
    for (int k = 0; k < count_; ++k) {
      preds_at_[k] = a_.pred.element_of(image, anchors_[k]);
      scores_.values[k] = score_at(a_, image, anchors_[k], target.label);
    }
    const C* const boxes = preds_.for_formula(preds_.read({0, 0, preds_at_}, count_), count_);
    losses_with(target.box, boxes, a_.constants, count_, losses_.values);
    for (int k = 0; k < count_; ++k) {
      use(anchors_[k], match_of(a_, scores_.values[k], losses_.values[k]));
    }
    count_ = 0;
  }

  const TaskAlignedArgs<B>& a_;
  const Arrays<B>& w_;
  ReaderOfBoxes<B> preds_;
  int count_ = 0;
  std::int64_t anchors_[kTilePairs], preds_at_[kTilePairs];
  Rows<C, 1> scores_, losses_;
};

/// Notes who chose each anchor of an image.
template <class B>
void note_choosers(const TaskAlignedArgs<B>& a, const Arrays<B>& w, std::int64_t image) {
  std::int32_t* const chooser = w.chooser + image * a.anchors;
  std::fill_n(chooser, a.anchors, kNobody);
  const BoxRows own = rows_of_image(a, image);
  for (std::int64_t j = 0; j < own.count; ++j) {
    const Rank* const chosen = w.chosen + (own.first + j) * w.most_chosen;
    for (std::int64_t i = 0; i < a.topk; ++i) {
      if (chosen[i] == 0) continue;
      std::int32_t& its = chooser[place_of(chosen[i])];
      its = its == kNobody ? static_cast<std::int32_t>(j) : kSeveral;
    }
  }
}

/// Writes whose an anchor is, with its metric in place of the score.
template <class B>
void find_owner(const TaskAlignedArgs<B>& a, const Arrays<B>& w, std::int64_t image,
                std::int64_t anchor) {
  const std::int64_t at = image * a.anchors + anchor;
  const std::int64_t box = w.chooser[at];
  if (box == kNobody) return set_owner(a, at, -1, {0, 0});
  const auto target_of = [&](std::int64_t row) -> const TargetBox<B>& { return w.targets[row]; };
  const std::int64_t row = box == kSeveral ? most_overlapping(a, image, anchor, target_of)
                                           : rows_of_image(a, image).first + box;
  const TargetBox<B>& target = target_of(row);
  if (is_inside(point_at(a, image, anchor), target)) {
    const Match match = match_of(a, image, anchor, target);
    if (match.counts()) return set_owner(a, at, row, match);
  }
  set_owner(a, at, -1, {0, 0});
}

/// Calls use(anchor, its place in the outputs, row) for each anchor of an image that has a box.
template <class B, class Use>
void for_owned(const TaskAlignedArgs<B>& a, std::int64_t image, const Use& use) {
  for (std::int64_t anchor = 0; anchor < a.anchors; ++anchor) {
    const std::int64_t at = image * a.anchors + anchor;
    const std::int64_t row = a.target_index.indices()[at];
    if (row >= 0) use(anchor, at, row);
  }
}

/// Leaves each box of an image its best topk2 anchors.
template <class B>
void drop_others(const TaskAlignedArgs<B>& a, const Arrays<B>& w, std::int64_t image) {
  const BoxRows own = rows_of_image(a, image);
  const auto heap = [&](std::int64_t row) { return w.chosen + row * w.most_chosen; };
  for (std::int64_t j = 0; j < own.count; ++j) std::fill_n(heap(own.first + j), a.topk2, Rank{0});
  for_owned(a, image, [&](std::int64_t anchor, std::int64_t at, std::int64_t row) {
    offer(heap(row), a.topk2, rank_of(a.score[at], anchor));
  });
  for_owned(a, image, [&](std::int64_t anchor, std::int64_t at, std::int64_t row) {
    if (rank_of(a.score[at], anchor) < heap(row)[0]) set_owner(a, at, -1, {0, 0});
  });
}

/// Turns the metrics of an image into scores.
template <class B>
void normalize(const TaskAlignedArgs<B>& a, const Arrays<B>& w, std::int64_t image) {
  const BoxRows own = rows_of_image(a, image);
  std::fill_n(w.most + own.first, own.count, Match{0, 0});
  for_owned(a, image, [&](std::int64_t, std::int64_t at, std::int64_t row) {
    Match& most = w.most[row];
    most = {std::max(most.metric, a.score[at]), std::max(most.overlap, a.overlap[at])};
  });
  for_owned(a, image, [&](std::int64_t, std::int64_t at, std::int64_t row) {
    a.score[at] = normalized(a.score[at], w.most[row]);
  });
}

/// Calls task(first, end) for parts of [0, count) of that size.
template <class Task>
void in_parts(const Execution& execution, std::int64_t count, std::int64_t size, const Task& task) {
  execution.parallel_for(ceil_div(count, size),
                         [&](std::int64_t i) { task(i * size, std::min((i + 1) * size, count)); });
}

template <class B>
void run(const TaskAlignedProblem& p, const TaskAlignedArgs<B>& a, const Execution& execution) {
  const Arrays<B> w(a, execution.workspace);
  execution.parallel_for(w.point_lists, [&](std::int64_t i) { read_points(a, w, i); });
  in_parts(execution, a.rows, kBoxesOfTask, [&](std::int64_t first, std::int64_t end) {
    Chooser<B> chooser(p, a, w);
    for (std::int64_t row = first; row < end; ++row) {
      const std::int64_t image = image_of_row(a, row);
      const BoxRows own = rows_of_image(a, image);
      if (row >= own.first && row < own.first + own.count) chooser.choose(image, row);
    }
  });
  execution.parallel_for(a.images, [&](std::int64_t b) { note_choosers(a, w, b); });
  in_parts(execution, a.images * a.anchors, kAnchorsOfTask,
           [&](std::int64_t first, std::int64_t end) {
             for (std::int64_t at = first; at < end; ++at) {
               find_owner(a, w, at / a.anchors, at % a.anchors);
             }
           });
  execution.parallel_for(a.images, [&](std::int64_t b) {
    if (a.topk2 > 0) drop_others(a, w, b);
    normalize(a, w, b);
  });
}

}  // namespace

std::size_t Operations::workspace_bytes(const TaskAlignedProblem& p) {
  std::size_t bytes = 0;
  with_boxes(p, [&](auto box) {
    using B = decltype(box);
    bytes = Arrays<B>(task_aligned_args<B>(p, {}), nullptr).bytes;
  });
  return bytes;
}

void Operations::task_aligned_match(const TaskAlignedProblem& p, const TaskAlignedOutputs& outputs,
                                    const Execution& execution) {
  cpu_capability();  // throws here, not in a thread
  const auto fill = [](void* data, int byte, std::size_t bytes) { std::memset(data, byte, bytes); };
  dispatch(p, outputs, fill, [&](auto box) {
    const auto args = task_aligned_args<decltype(box)>(p, outputs);
    if (!args.is_padded() && !are_in_order(args.offsets, args.images, args.rows)) {
      return set_nobodys(p, outputs, fill);
    }
    run(p, args, execution);
  });
}

}  // namespace boxloss::native
