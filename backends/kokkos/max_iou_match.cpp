// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "dispatch/max_iou_match.hpp"

#include "atomics.hpp"
#include "call.hpp"
#include "kernels/max_iou_match_steps.hpp"
#include "kernels/team.hpp"
#include "math/ceil_div.hpp"
#include "operations.hpp"

/// core/kernels/max_iou_match_steps.hpp, each anchor by itself: boxes are prepared once, in the
/// workspace, and an anchor skips those that do not reach its own bounds.
namespace boxloss::kokkos {
namespace {

template <class B>
struct Matching {
  using C = typename B::Value;
  MaxIouArgs<C> args;
  BestOfBoxes<C> best;
  MatchBox<B>* boxes;
  bool* are_in_order;  ///< the offsets

  KOKKOS_FUNCTION std::int64_t image_of(std::int64_t at) const { return at / args.anchor_count; }
  KOKKOS_FUNCTION OwnBoxes boxes_of(std::int64_t image) const {
    return own_boxes(args, image, *are_in_order);
  }
  KOKKOS_FUNCTION MatchBox<B> anchor_at(std::int64_t at) const {
    const std::int64_t image = image_of(at);
    return match_box_at<B>(args.anchors, args.angle_unit, image, at - image * args.anchor_count);
  }
};

template <class B>
struct Prepare : Matching<B> {
  using Shared = bool;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team, Shared& shared) const {
    const auto& a = this->args;
    if (team.number() == 0) {
      const bool are_right = boxloss::are_in_order(team, shared, a.offsets, a.images, a.boxes);
      if (team.thread() == 0) *this->are_in_order = are_right;
    }
    const std::int64_t threads = team.threads();
    std::int64_t row = team.number() * threads + team.thread();
    for (; row < a.boxes; row += team.count() * threads) {
      this->boxes[row] = match_box_at<B>(a.target, a.angle_unit, 0, row);
    }
  }
};

template <class B>
struct FindBestOfBoxes : Matching<B> {
  KOKKOS_FUNCTION void operator()(std::int64_t at) const {
    const MatchBox<B> anchor = this->anchor_at(at);
    const auto bounds = bounds_of(anchor);
    const OwnBoxes own = this->boxes_of(this->image_of(at));
    for (std::int64_t row = own.begin; row < own.end; ++row) {
      const MatchBox<B>& box = this->boxes[row];
      if (!can_overlap(extent_of(box), bounds)) continue;
      const auto bits = bits_of(iou_of(box, anchor));
      auto* const most = &this->best.ious[row];
      if (bits > *most) Atomics::max(most, bits);
    }
  }
};

template <class B>
struct MatchAnchors : Matching<B> {
  using C = typename B::Value;

  KOKKOS_FUNCTION void operator()(std::int64_t at) const {
    const auto& a = this->args;
    const std::int64_t image = this->image_of(at), slot = at - image * a.anchor_count;
    const MatchBox<B> anchor = this->anchor_at(at);
    const auto bounds = bounds_of(anchor);
    const OwnBoxes own = this->boxes_of(image);
    C best_iou = 0;
    std::int64_t best_row = own.begin;
    std::int64_t mark = kNoBox;  // the last box whose best IoU is the anchor's
    for (std::int64_t row = own.begin; row < own.end; ++row) {
      const C low_quality = low_quality_of(row);
      if (low_quality == C(0)) mark = row;  // then all anchors have the box's best IoU
      const MatchBox<B>& box = this->boxes[row];
      if (!can_overlap(extent_of(box), bounds)) continue;
      const C iou = iou_of(box, anchor);
      if (is_better(iou, best_iou)) {
        best_iou = iou;
        best_row = row;
      }
      if (iou != low_quality) continue;
      mark = row;
      if (a.low_quality == LowQuality::kForce) {
        Atomics::min(&this->best.anchors[row], static_cast<unsigned>(slot));
      }
    }
    std::int64_t match = own.begin < own.end ? match_of(a, best_iou, best_row) : kNoBox;
    if (mark != kNoBox && a.low_quality == LowQuality::kArgmax) match = best_row;
    if (mark != kNoBox && a.low_quality == LowQuality::kOverwrite) match = mark;
    write_match(a, image, slot, match, best_iou);
  }

 private:
  /// The best IoU of a box; NaN where low quality does not apply to it.
  KOKKOS_FUNCTION C low_quality_of(std::int64_t row) const {
    if (this->args.low_quality == LowQuality::kNone) return kNotANumber<C>;
    const C iou = this->best.iou(row);
    return takes_low_quality(this->args, iou) ? iou : kNotANumber<C>;
  }
};

/// Some threads for each image.
template <class Space, class B>
struct Force : Matching<B> {
  KOKKOS_FUNCTION void operator()(std::int64_t unit) const {
    const std::int64_t image = unit / kLanes<Space>;
    force_boxes(this->args, this->best, image, this->boxes_of(image),
                static_cast<int>(unit % kLanes<Space>), kLanes<Space>);
  }
};

}  // namespace

std::size_t Workspaces::workspace_bytes(const MaxIouProblem& p) {
  std::size_t of_box = 0;
  with_boxes(p, [&](auto box) {
    using B = decltype(box);
    of_box = sizeof(MatchBox<B>) + sizeof(Bits<typename B::Value>) + sizeof(unsigned);
  });
  return static_cast<std::size_t>(p.target.slots) * of_box + sizeof(bool);
}

template <class Space>
void Operations<Space>::max_iou_match(const MaxIouProblem& p, const MaxIouOutputs& outputs,
                                      const Execution& execution) {
  constexpr const char* kName = "boxloss::max_iou_match";
  call<Space>(kName, execution, [&](const Space& space) {
    const auto fill_bytes = [&](void* data, int byte, std::size_t bytes) {
      fill(space, data, byte, bytes);
    };
    dispatch(p, outputs, fill_bytes, [&](auto box) {
      using B = decltype(box);
      using C = typename B::Value;
      Matching<B> match = {};
      match.args = max_iou_args<C>(p, outputs);
      const std::int64_t boxes = match.args.boxes;
      match.boxes = static_cast<MatchBox<B>*>(execution.workspace);
      match.best = best_of_boxes(match.boxes + boxes, match.args, 1, fill_bytes);
      match.are_in_order = reinterpret_cast<bool*>(match.best.anchors + boxes);
      const std::int64_t anchors = match.args.images * match.args.anchor_count;
      launch_body(kName, space, ceil_div(boxes, kThreads<Space>), Prepare<B>{match});
      if (p.low_quality != LowQuality::kNone) {
        launch_units(kName, space, anchors, FindBestOfBoxes<B>{match});
      }
      launch_units(kName, space, anchors, MatchAnchors<B>{match});
      if (p.low_quality == LowQuality::kForce) {
        launch_units(kName, space, match.args.images * kLanes<Space>, Force<Space, B>{match});
      }
    });
  });
}

template void Operations<HostSpace>::max_iou_match(const MaxIouProblem&, const MaxIouOutputs&,
                                                   const Execution&);
#if defined(BOXLOSS_KOKKOS_DEVICE)
template void Operations<DeviceSpace>::max_iou_match(const MaxIouProblem&, const MaxIouOutputs&,
                                                     const Execution&);
void warm_up_max_iou_match(const DeviceSpace& space) { launch_nothing(space); }
#endif

}  // namespace boxloss::kokkos
