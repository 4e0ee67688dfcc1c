// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/task_aligned_match.hpp>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "../dtypes/elements.hpp"
#include "../losses/ciou.hpp"
#include "../losses/rotated/probiou.hpp"
#include "../math/bits.hpp"
#include "../math/unfused.hpp"
#include "../pairings/indices.hpp"

/// Inputs and outputs of the task-aligned match, for every kind of loop, and what is decided for
/// one anchor and one box.
namespace boxloss {

/// x^value: whole powers are computed as products, and the power 0.5 as a square root.
template <class C>
struct Exponent {
  C value;
  int whole;  ///< the value, if it is a small number without a fraction, else -1
};

template <class C>
BOXLOSS_HOST_DEVICE C power(C x, const Exponent<C>& exponent) {
  if (exponent.value == C(0.5)) return std::sqrt(x);
  if (exponent.whole < 0) return std::pow(x, exponent.value);
  C result = 1;
  for (int left = exponent.whole; left > 0; left /= 2) {
    if (left % 2 != 0) result *= x;
    x *= x;
  }
  return result;
}

/// Of boxes of type B.
template <class B>
struct TaskAlignedArgs {
  using C = typename B::Value;

  Elements<Any> scores;
  std::int64_t score_image_stride, score_anchor_stride, score_class_stride;
  Boxes<Any> pred;
  Elements<Any> points;
  std::int64_t point_image_stride, point_anchor_stride, point_coordinate_stride;
  Boxes<Any> target;
  AngleUnit angle_unit;  ///< of rotated boxes
  Indices offsets;       ///< null data where the boxes are padded
  Indices labels;
  std::int64_t images, anchors, classes;
  std::int64_t rows, slots;  ///< of target: all, and of an image where they are padded
  std::int64_t topk, topk2;  ///< no more than anchors; topk2 is 0 where all are kept
  Exponent<C> alpha, beta;
  C min_side, small_side;
  Constants<C> constants;  ///< of the overlap's formula
  IndexOutputs target_index;
  float *score, *overlap;

  BOXLOSS_HOST_DEVICE bool is_padded() const { return offsets.data == nullptr; }
};

/// Neighbouring rows of target.
struct BoxRows {
  std::int64_t first, count;
};

/// The rows of an image. Offsets must be in order.
template <class B>
BOXLOSS_HOST_DEVICE BoxRows rows_of_image(const TaskAlignedArgs<B>& a, std::int64_t image) {
  if (a.is_padded()) return {image * a.slots, a.slots};
  return {a.offsets[image], a.offsets[image + 1] - a.offsets[image]};
}

/// The image that a row of target belongs to; if it belongs to none, some image. rows_of_image
/// tells whether the row is really among that image's.
template <class B>
BOXLOSS_HOST_DEVICE std::int64_t image_of_row(const TaskAlignedArgs<B>& a, std::int64_t row) {
  if (a.is_padded()) return row / a.slots;
  std::int64_t first = 0, last = a.images - 1;
  while (first < last) {  // finds the last image that begins at the row or before it
    const std::int64_t middle = last - (last - first) / 2;
    if (a.offsets[middle] <= row) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  return first;
}

/// Whether a box of a padded list is one: torch adds up its numbers, of which an angle is in
/// radians.
template <class C>
BOXLOSS_HOST_DEVICE bool is_given(const Box<C>& box) {
  return (box.x1 + box.y1) + (box.x2 + box.y2) > 0;
}
template <class C>
BOXLOSS_HOST_DEVICE bool is_given(const RotatedBox<C>& box) {
  return (box.cx + box.cy) + (box.w + box.h) + box.angle > 0;
}

template <class B, class C>
BOXLOSS_HOST_DEVICE C larger_side(C side, const TaskAlignedArgs<B>& a) {
  return a.min_side > 0 && side < a.small_side ? a.min_side : side;
}

/// A rectangle: a corner, the edges from there, and their squares.
template <class C>
struct Rectangle {
  C x, y;
  C along_x, along_y, along_square;
  C across_x, across_y, across_square;
};

/// Where points lie in a box: in the box, whose sides may be enlarged. As Ultralytics computes it,
/// since its roundings decide.
template <class C>
BOXLOSS_HOST_DEVICE Box<C> region_of(const TaskAlignedArgs<Box<C>>& a, const Box<C>& box) {
  if (!(a.min_side > 0)) return box;
  const C x = (box.x1 + box.x2) * C(0.5), y = (box.y1 + box.y2) * C(0.5);
  const C half_w = larger_side(box.x2 - box.x1, a) * C(0.5);
  const C half_h = larger_side(box.y2 - box.y1, a) * C(0.5);
  return {x - half_w, y - half_h, x + half_w, y + half_h};
}
template <class C>
BOXLOSS_HOST_DEVICE Rectangle<C> region_of(const TaskAlignedArgs<RotatedBox<C>>& a,
                                           const RotatedBox<C>& box) {
  using U = Unfused<C>;
  const SinCos<U> turn = sin_cos(U(box.angle));
  const U half_w = C(0.5) * larger_side(box.w, a);
  const U half_h = C(0.5) * larger_side(box.h, a);
  const U w_x = half_w * turn.cos, w_y = half_w * turn.sin;
  const U h_x = -half_h * turn.sin, h_y = half_h * turn.cos;
  const U sum_x = U(box.cx) + w_x, sum_y = U(box.cy) + w_y;
  const U x = sum_x + h_x, y = sum_y + h_y;
  const U across_x = (sum_x - h_x) - x, across_y = (sum_y - h_y) - y;
  const U along_x = ((U(box.cx) - w_x) + h_x) - x, along_y = ((U(box.cy) - w_y) + h_y) - y;
  return {plain(x),
          plain(y),
          plain(along_x),
          plain(along_y),
          plain(along_x * along_x + along_y * along_y),
          plain(across_x),
          plain(across_y),
          plain(across_x * across_x + across_y * across_y)};
}

/// A ground-truth box, and where points lie in it.
template <class B>
struct TargetBox {
  using C = typename B::Value;

  B box;  ///< corners, or an angle in radians
  std::conditional_t<B::kNumbers == 5, Rectangle<C>, Box<C>> region;
  std::int64_t label;  ///< -1 for padding, which no point lies in
};

template <class B>
BOXLOSS_HOST_DEVICE TargetBox<B> target_box(const TaskAlignedArgs<B>& a, std::int64_t row) {
  const std::int64_t image = a.is_padded() ? row / a.slots : 0;
  const B box = in_radians(a.target.template get<B>(image, row - image * a.slots), a.angle_unit);
  const std::int64_t label = a.labels[row];
  const bool has_box = !a.is_padded() || is_given(box);
  return {box, region_of(a, box), has_box && label >= 0 && label < a.classes ? label : -1};
}

/// Reads float32, the most common dtype, without the call that run-time dtypes need.
template <class C>
BOXLOSS_HOST_DEVICE C number_at(const Elements<Any>& numbers, std::int64_t i) {
  if (numbers.dtype == DType::kF32) return static_cast<const float*>(numbers.data)[i];
  return numbers.template get<C>(i);
}

template <class C>
struct Point {
  C x, y;
};

template <class B, class C = typename B::Value>
BOXLOSS_HOST_DEVICE Point<C> point_at(const TaskAlignedArgs<B>& a, std::int64_t image,
                                      std::int64_t anchor) {
  const std::int64_t at = image * a.point_image_stride + anchor * a.point_anchor_stride;
  return {number_at<C>(a.points, at), number_at<C>(a.points, at + a.point_coordinate_stride)};
}

/// By more than 1e-9 on every side.
template <class C>
BOXLOSS_HOST_DEVICE bool is_inside(const Point<C>& point, const Box<C>& box) {
  return point.x - box.x1 > C(1e-9) && point.y - box.y1 > C(1e-9) && box.x2 - point.x > C(1e-9) &&
         box.y2 - point.y > C(1e-9);
}
template <class C>
BOXLOSS_HOST_DEVICE bool is_inside(const Point<C>& point, const Rectangle<C>& r) {
  const C x = point.x - r.x, y = point.y - r.y;
  const C along = product(x, r.along_x) + product(y, r.along_y);
  const C across = product(x, r.across_x) + product(y, r.across_y);
  return along >= C(0) && along <= r.along_square && across >= C(0) && across <= r.across_square;
}
template <class B, class C = typename B::Value>
BOXLOSS_HOST_DEVICE bool is_inside(const Point<C>& point, const TargetBox<B>& target) {
  return target.label >= 0 && is_inside(point, target.region);
}

/// The score to the power alpha, rounded to the scores' dtype, as torch does.
template <class B, class C>
BOXLOSS_HOST_DEVICE C score_power(const TaskAlignedArgs<B>& a, C score) {
  const C value = power(score, a.alpha);
  if (a.scores.dtype == DType::kF16) return to_float(to_half(static_cast<float>(value)));
  if (a.scores.dtype == DType::kBF16) return to_float(to_bfloat16(static_cast<float>(value)));
  return value;
}

template <class B, class C = typename B::Value>
BOXLOSS_HOST_DEVICE C score_at(const TaskAlignedArgs<B>& a, std::int64_t image, std::int64_t anchor,
                               std::int64_t label) {
  const std::int64_t at =
      image * a.score_image_stride + anchor * a.score_anchor_stride + label * a.score_class_stride;
  return number_at<C>(a.scores, at);
}

template <class B>
BOXLOSS_HOST_DEVICE B pred_at(const TaskAlignedArgs<B>& a, std::int64_t image,
                              std::int64_t anchor) {
  const B box = a.pred.template get<B>(image, anchor);
  if constexpr (B::kNumbers == 5) {
    return in_radians(box, a.angle_unit);
  } else {
    return to_corners(box, a.pred.format);
  }
}

/// 1 - the overlap, before what is negative becomes 0.
template <class C>
BOXLOSS_HOST_DEVICE C loss_of(const Box<C>& pred, const Box<C>& target, const Constants<C>& c) {
  return Ciou::loss(pred, target, c);
}
template <class C>
BOXLOSS_HOST_DEVICE C loss_of(const RotatedBox<C>& pred, const RotatedBox<C>& target,
                              const Constants<C>& c) {
  return rotated::Probiou::loss(pred, target, c);
}

/// The overlap of a prediction and a ground-truth box, from that loss. NaN stays NaN.
template <class C>
BOXLOSS_HOST_DEVICE C overlap_of(C loss) {
  return at_least(C(1) - loss, C(0));
}

/// What a box chooses by, for an anchor whose point lies in the box. NaN stays NaN.
struct Match {
  float metric, overlap;

  /// Whether the anchor is a candidate. The overlap is checked, too, since with beta = 0 the metric
  /// does not show that the overlap is NaN.
  BOXLOSS_HOST_DEVICE bool counts() const { return metric > 0 && overlap >= 0; }
  /// Whether this box can own an anchor that several boxes chose, if it overlaps the anchor most.
  /// If its metric is 0, the anchor is then nobody's.
  BOXLOSS_HOST_DEVICE bool can_own() const {
    return metric == metric && (overlap > 0 || (overlap == 0 && metric > 0));
  }
};

template <class B, class C>
BOXLOSS_HOST_DEVICE Match match_of(const TaskAlignedArgs<B>& a, C score, C loss) {
  const C overlap = overlap_of(loss);
  return {static_cast<float>(score_power(a, score) * power(overlap, a.beta)),
          static_cast<float>(overlap)};
}

/// The same, with prediction and score read from memory.
template <class B>
BOXLOSS_HOST_DEVICE Match match_of(const TaskAlignedArgs<B>& a, std::int64_t image,
                                   std::int64_t anchor, const TargetBox<B>& target) {
  return match_of(a, score_at(a, image, anchor, target.label),
                  loss_of(pred_at(a, image, anchor), target.box, a.constants));
}

/// For an anchor that several boxes of its image chose: the row of the box that overlaps it most.
/// target_of(row) gives the box of a row.
template <class B, class TargetOf>
BOXLOSS_HOST_DEVICE std::int64_t most_overlapping(const TaskAlignedArgs<B>& a, std::int64_t image,
                                                  std::int64_t anchor, const TargetOf& target_of) {
  const auto point = point_at(a, image, anchor);
  const B pred = pred_at(a, image, anchor);
  const BoxRows own = rows_of_image(a, image);
  std::int64_t best = own.first;
  float most = -1;
  for (std::int64_t row = own.first; row < own.first + own.count; ++row) {
    const TargetBox<B>& target = target_of(row);
    if (!is_inside(point, target)) continue;
    const auto loss = loss_of(pred, target.box, a.constants);
    if (!(static_cast<float>(overlap_of(loss)) > most)) continue;
    const Match match = match_of(a, score_at(a, image, anchor, target.label), loss);
    if (!match.can_own()) continue;
    most = match.overlap;
    best = row;
  }
  return best;
}

/// A number that is not negative, and its place, as one integer. A larger number has a higher rank;
/// of equal numbers, the one at the lower place. 0 stands for none.
using Rank = unsigned long long;

BOXLOSS_HOST_DEVICE Rank rank_of(float value, std::int64_t place) {
  return static_cast<Rank>(bit_cast<std::uint32_t>(value)) << 32 |
         (~static_cast<std::uint32_t>(place));
}
BOXLOSS_HOST_DEVICE std::uint32_t place_of(Rank rank) { return ~static_cast<std::uint32_t>(rank); }

/// An anchor's score: its metric, scaled by the highest overlap and the highest metric among the
/// anchors of its box.
BOXLOSS_HOST_DEVICE float normalized(float metric, const Match& most) {
  return metric * most.overlap / (most.metric + 1e-9f);
}

/// Writes which box owns an anchor: `row` is -1 if none does.
template <class B>
BOXLOSS_HOST_DEVICE void set_owner(const TaskAlignedArgs<B>& a, std::int64_t at, std::int64_t row,
                                   const Match& match) {
  a.target_index.set(at, row);
  a.score[at] = match.metric;
  a.overlap[at] = match.overlap;
}

}  // namespace boxloss
