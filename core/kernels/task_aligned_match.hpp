// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/task_aligned_match.hpp>
#include <cmath>
#include <cstdint>

#include "../dtypes/elements.hpp"
#include "../losses/ciou.hpp"
#include "../math/bits.hpp"
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

template <class C>
struct TaskAlignedArgs {
  Elements<Any> scores;
  std::int64_t score_image_stride, score_anchor_stride, score_class_stride;
  Boxes<Any> pred;
  Elements<Any> points;
  std::int64_t point_image_stride, point_anchor_stride, point_coordinate_stride;
  Boxes<Any> target;
  Indices offsets;  ///< null data where the boxes are padded
  Indices labels;
  std::int64_t images, anchors, classes;
  std::int64_t rows, slots;  ///< of target: all, and of an image where they are padded
  std::int64_t topk, topk2;  ///< no more than anchors; topk2 is 0 where all are kept
  Exponent<C> alpha, beta;
  C min_side, small_side;
  Eps<C> eps;
  IndexOutputs target_index;
  float *score, *overlap;

  BOXLOSS_HOST_DEVICE bool is_padded() const { return offsets.data == nullptr; }
};

/// Neighbouring rows of target.
struct BoxRows {
  std::int64_t first, count;
};

/// The rows of an image. Offsets must be in order.
template <class C>
BOXLOSS_HOST_DEVICE BoxRows rows_of_image(const TaskAlignedArgs<C>& a, std::int64_t image) {
  if (a.is_padded()) return {image * a.slots, a.slots};
  return {a.offsets[image], a.offsets[image + 1] - a.offsets[image]};
}

/// The image that a row of target belongs to; if it belongs to none, some image. rows_of_image
/// tells whether the row is really among that image's.
template <class C>
BOXLOSS_HOST_DEVICE std::int64_t image_of_row(const TaskAlignedArgs<C>& a, std::int64_t row) {
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

/// A true box, and the box that counts for which points lie in it: its sides may be enlarged.
template <class C>
struct TargetBox {
  Box<C> corners, around;
  std::int64_t label;  ///< -1 for padding, which no point lies in
};

template <class C>
BOXLOSS_HOST_DEVICE C larger_side(C side, const TaskAlignedArgs<C>& a) {
  return side < a.small_side ? a.min_side : side;
}

template <class C>
BOXLOSS_HOST_DEVICE TargetBox<C> target_box(const TaskAlignedArgs<C>& a, std::int64_t row) {
  const std::int64_t image = a.is_padded() ? row / a.slots : 0;
  const Box<C> box = a.target.template get<Box<C>>(image, row - image * a.slots);
  const std::int64_t label = a.labels[row];
  const bool has_box = !a.is_padded() || (box.x1 + box.y1) + (box.x2 + box.y2) > 0;
  TargetBox<C> target = {box, box, has_box && label >= 0 && label < a.classes ? label : -1};
  if (a.min_side > 0) {
    // Computed from centre and sides, as Ultralytics does: its roundings decide which points lie
    // inside.
    const C x = (box.x1 + box.x2) * C(0.5), y = (box.y1 + box.y2) * C(0.5);
    const C half_w = larger_side(box.x2 - box.x1, a) * C(0.5);
    const C half_h = larger_side(box.y2 - box.y1, a) * C(0.5);
    target.around = {x - half_w, y - half_h, x + half_w, y + half_h};
  }
  return target;
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

template <class C>
BOXLOSS_HOST_DEVICE Point<C> point_at(const TaskAlignedArgs<C>& a, std::int64_t image,
                                      std::int64_t anchor) {
  const std::int64_t at = image * a.point_image_stride + anchor * a.point_anchor_stride;
  return {number_at<C>(a.points, at), number_at<C>(a.points, at + a.point_coordinate_stride)};
}

/// Whether the point lies in the box, by more than 1e-9 on every side.
template <class C>
BOXLOSS_HOST_DEVICE bool is_inside(const Point<C>& point, const TargetBox<C>& target) {
  const Box<C>& box = target.around;
  return target.label >= 0 && point.x - box.x1 > C(1e-9) && point.y - box.y1 > C(1e-9) &&
         box.x2 - point.x > C(1e-9) && box.y2 - point.y > C(1e-9);
}

/// The score to the power alpha, rounded to the scores' dtype, as torch does.
template <class C>
BOXLOSS_HOST_DEVICE C score_power(const TaskAlignedArgs<C>& a, C score) {
  const C value = power(score, a.alpha);
  if (a.scores.dtype == DType::kF16) return to_float(to_half(static_cast<float>(value)));
  if (a.scores.dtype == DType::kBF16) return to_float(to_bfloat16(static_cast<float>(value)));
  return value;
}

template <class C>
BOXLOSS_HOST_DEVICE C score_at(const TaskAlignedArgs<C>& a, std::int64_t image, std::int64_t anchor,
                               std::int64_t label) {
  const std::int64_t at =
      image * a.score_image_stride + anchor * a.score_anchor_stride + label * a.score_class_stride;
  return number_at<C>(a.scores, at);
}

/// The overlap of a prediction and a true box, from their CIoU loss. NaN stays NaN.
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

template <class C>
BOXLOSS_HOST_DEVICE Match match_of(const TaskAlignedArgs<C>& a, C score, C loss) {
  const C overlap = overlap_of(loss);
  return {static_cast<float>(score_power(a, score) * power(overlap, a.beta)),
          static_cast<float>(overlap)};
}

/// The same, with prediction and score read from memory.
template <class C>
BOXLOSS_HOST_DEVICE Match match_of(const TaskAlignedArgs<C>& a, std::int64_t image,
                                   std::int64_t anchor, const TargetBox<C>& target) {
  const Box<C> pred = to_corners(a.pred.template get<Box<C>>(image, anchor), a.pred.format);
  return match_of(a, score_at(a, image, anchor, target.label),
                  Ciou::loss(pred, target.corners, a.eps));
}

/// For an anchor that several boxes of its image chose: the row of the box that overlaps it most.
/// target_of(row) gives the box of a row.
template <class C, class TargetOf>
BOXLOSS_HOST_DEVICE std::int64_t most_overlapping(const TaskAlignedArgs<C>& a, std::int64_t image,
                                                  std::int64_t anchor, const TargetOf& target_of) {
  const Point<C> point = point_at(a, image, anchor);
  const Box<C> pred = to_corners(a.pred.template get<Box<C>>(image, anchor), a.pred.format);
  const BoxRows own = rows_of_image(a, image);
  std::int64_t best = own.first;
  float most = -1;
  for (std::int64_t row = own.first; row < own.first + own.count; ++row) {
    const TargetBox<C>& target = target_of(row);
    if (!is_inside(point, target)) continue;
    const C loss = Ciou::loss(pred, target.corners, a.eps);
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
template <class C>
BOXLOSS_HOST_DEVICE void set_owner(const TaskAlignedArgs<C>& a, std::int64_t at, std::int64_t row,
                                   const Match& match) {
  a.target_index.set(at, row);
  a.score[at] = match.metric;
  a.overlap[at] = match.overlap;
}

}  // namespace boxloss
