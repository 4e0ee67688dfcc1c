// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/task_aligned_match.hpp>
#include <cmath>

#include "../kernels/task_aligned_match_steps.hpp"
#include "compute_type.hpp"

namespace boxloss {

template <class C>
Exponent<C> exponent(double value) {
  constexpr double kMostWhole = 16;
  const bool is_whole = value <= kMostWhole && value == std::floor(value);
  return {static_cast<C>(value), is_whole ? static_cast<int>(value) : -1};
}

template <class B>
TaskAlignedArgs<B> task_aligned_args(const TaskAlignedProblem& p,
                                     const TaskAlignedOutputs& outputs) {
  using C = typename B::Value;
  const std::int64_t topk2 = p.topk2.value_or(p.topk);
  TaskAlignedArgs<B> a = {};
  a.scores = {p.scores.data, p.scores.dtype};
  a.score_image_stride = p.scores.image_stride;
  a.score_anchor_stride = p.scores.anchor_stride;
  a.score_class_stride = p.scores.class_stride;
  a.pred = boxes<Any>(p.pred);
  a.points = {p.points.data, p.points.dtype};
  a.point_image_stride = p.points.image_stride;
  a.point_anchor_stride = p.points.anchor_stride;
  a.point_coordinate_stride = p.points.coordinate_stride;
  a.target = boxes<Any>(p.target);
  a.angle_unit = p.angle_unit.value_or(AngleUnit::kRadians);
  a.offsets = indices(p.offsets);
  a.labels = indices(p.labels);
  a.images = p.images;
  a.anchors = p.anchors;
  a.classes = p.classes;
  a.rows = p.target.images * p.target.slots;
  a.slots = p.target.slots;
  a.topk = std::min(p.topk, p.anchors);
  a.topk2 = topk2 == p.topk ? 0 : std::min(topk2, p.anchors);
  a.alpha = exponent<C>(p.alpha);
  a.beta = exponent<C>(p.beta);
  a.min_side = static_cast<C>(p.min_side);
  a.small_side = static_cast<C>(p.small_side.value_or(p.min_side));
  // CIoU's eps, Probiou's floor.
  a.constants = {make_eps<C>(1e-7, EpsMode::kAdd),
                 {static_cast<C>(rotated::Probiou::kParameters[0].standard)}};
  a.target_index = {outputs.target_index, p.index == DType::kI64};
  a.score = outputs.score;
  a.overlap = outputs.overlap;
  return a;
}

/// Where the steps' workspace lies.
inline MatchWork match_work(const TaskAlignedProblem& p, void* workspace) {
  MatchWork work = {};
  work.best = static_cast<Rank*>(workspace);
  work.choosers = work.best + p.images * p.anchors;
  work.most = reinterpret_cast<MostBits*>(work.choosers + p.images * p.anchors);
  return work;
}

inline std::size_t match_work_bytes(const TaskAlignedProblem& p) {
  const auto anchors = static_cast<std::size_t>(p.images * p.anchors);
  const auto rows = static_cast<std::size_t>(p.target.images * p.target.slots);
  return anchors * (sizeof(Rank) + sizeof(Choosers)) + rows * sizeof(MostBits);
}

/// Writes that no anchor has a box, by fill(pointer, byte, bytes), which sets every byte.
template <class Fill>
void set_nobodys(const TaskAlignedProblem& p, const TaskAlignedOutputs& outputs, const Fill& fill) {
  const auto anchors = static_cast<std::size_t>(p.images * p.anchors);
  fill(outputs.target_index, 0xff, size_of(p.index) * anchors);
  fill(outputs.score, 0, sizeof(float) * anchors);
  fill(outputs.overlap, 0, sizeof(float) * anchors);
}

/// Calls launch(B()) for the boxes of the compute type; or, where no anchor can have a box, writes
/// that by `fill`.
template <class Fill, class Launch>
void dispatch(const TaskAlignedProblem& p, const TaskAlignedOutputs& outputs, const Fill& fill,
              const Launch& launch) {
  if (p.images * p.anchors == 0) return;
  if (p.classes == 0 || p.target.images * p.target.slots == 0) {
    return set_nobodys(p, outputs, fill);
  }
  with_boxes(p, launch);
}

}  // namespace boxloss
