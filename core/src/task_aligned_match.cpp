// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/registry.hpp>
#include <boxloss/task_aligned_match.hpp>
#include <cmath>
#include <limits>

#include "src/checks.hpp"

namespace boxloss {
namespace {

constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();

/// Whether nothing is written.
bool is_empty(const TaskAlignedProblem& p) { return p.images == 0 || p.anchors == 0; }

/// Whether nothing is read: no anchor can have a box.
bool is_unread(const TaskAlignedProblem& p) {
  return is_empty(p) || p.classes == 0 || p.target.images == 0 || p.target.slots == 0;
}

const auto& served_by(const Implementation& implementation, const TaskAlignedProblem& p) {
  return p.angle_unit.has_value() ? implementation.rotated_task_aligned_match
                                  : implementation.task_aligned_match;
}

/// The most anchors that a box chooses or keeps.
std::int64_t most_owned(const TaskAlignedProblem& p) {
  return std::min(std::max(p.topk, p.topk2.value_or(0)), p.anchors);
}

void check_shape(const TaskAlignedProblem& p) {
  check_size("images", p.images, "images");
  check_size("anchors", p.anchors, "anchors of each image");
  check_size("classes", p.classes, "scores of each anchor");
  check(p.pred.images == p.images && p.pred.slots == p.anchors, "pred has ", p.pred.images,
        " images of ", p.pred.slots, " boxes; it must have one for each of ", p.images, " images' ",
        p.anchors, " anchors");
  const bool is_padded = !is_given(p.offsets);
  check(
      p.target.images == (is_padded ? p.images : 1), "target has ", p.target.images,
      " images; it must have ", is_padded ? p.images : 1,
      is_padded ? ", one for each image, without offsets" : ", a list of all boxes, with offsets");
  check(!is_given(p.pred.rows) && !is_given(p.target.rows),
        "pred.rows and target.rows must not be given for a task-aligned match");
  check(p.angle_unit.has_value() || p.target.format == BoxFormat::kXyxy, "target is ",
        shown(p.target.format), "; it must be xyxy");
  // An anchor and a box of an image are 32-bit numbers, and so are rows where they are written so.
  check(p.anchors <= kMost32 && p.target.slots <= kMost32, "there are ", p.anchors,
        " anchors, and target has ", p.target.slots, " slots; there can be 2^31 - 1 of each");
  check(
      p.index == DType::kI64 || p.target.slots == 0 || p.target.images <= kMost32 / p.target.slots,
      "target has ", p.target.images, " images of ", p.target.slots, " slots, which is more than ",
      name_of(p.index), " can count");
  // Of the workspace: what boxes choose.
  const std::int64_t most_chosen = std::max<std::int64_t>(most_owned(p), 1);
  check(p.target.images * p.target.slots <= kMostBoxes / most_chosen, "target has ",
        p.target.images * p.target.slots, " boxes, which choose ", most_chosen,
        " anchors each; that is more than 64 bits can count");
}

void check_scores(const TaskAlignedProblem& p) {
  const ClassScores& scores = p.scores;
  check_stride("scores", "image", scores.image_stride, p.images);
  check_stride("scores", "anchor", scores.anchor_stride, p.anchors);
  check(may_be_stride(scores.image_stride) && may_be_stride(scores.anchor_stride) &&
            scores.class_stride >= 0,
        "scores has a negative stride: ", scores.image_stride, " by image, ", scores.anchor_stride,
        " by anchor, ", scores.class_stride, " by class");
}

void check_points(const TaskAlignedProblem& p) {
  const PointView& points = p.points;
  check_stride("points", "image", points.image_stride, p.images);
  check(may_be_stride(points.image_stride) && points.anchor_stride >= 0 &&
            points.coordinate_stride >= 0,
        "points has a negative stride: ", points.image_stride, " by image, ", points.anchor_stride,
        " by anchor, ", points.coordinate_stride, " by coordinate");
}

void check_not_negative(const char* name, double value, DType compute) {
  const double most = compute == DType::kF64 ? std::numeric_limits<double>::max()
                                             : std::numeric_limits<float>::max();
  check(value >= 0 && value <= most, name, " is ", value,
        "; it must be finite and not negative, as a ", name_of(compute));
}

void check_pointers(const TaskAlignedProblem& p) {
  const bool is_read = !is_unread(p);
  check(p.scores.data != nullptr || !is_read, "scores.data is null");
  check(p.points.data != nullptr || !is_read, "points.data is null");
  check_aligned("scores", p.scores.data, p.scores.dtype);
  check_pointers("pred", "pred.rows", p.pred, is_read);
  check_aligned("points", p.points.data, p.points.dtype);
  check_pointers("target", "target.rows", p.target, is_read);
  check_pointer("offsets", p.offsets, is_read);
  check_pointer("labels", p.labels, is_read);
}

void check_outputs(const TaskAlignedProblem& p, const TaskAlignedOutputs& outputs) {
  const bool are_written = !is_empty(p);
  check(outputs.target_index != nullptr || !are_written, "outputs.target_index is null");
  check(outputs.score != nullptr || !are_written, "outputs.score is null");
  check(outputs.overlap != nullptr || !are_written, "outputs.overlap is null");
  check_aligned("outputs.target_index", outputs.target_index, p.index);
  check_aligned("outputs.score", outputs.score, DType::kF32);
  check_aligned("outputs.overlap", outputs.overlap, DType::kF32);
}

}  // namespace

DType compute_dtype(const TaskAlignedProblem& p) {
  const bool is_f64 = p.scores.dtype == DType::kF64 || p.pred.dtype == DType::kF64 ||
                      p.points.dtype == DType::kF64 || p.target.dtype == DType::kF64;
  return is_f64 ? DType::kF64 : DType::kF32;
}

void check_options(const TaskAlignedProblem& p) {
  const DType compute = compute_dtype(p);
  check_enumerator("pred", ".format", p.pred.format);
  check_enumerator("angle_unit", "", p.angle_unit.value_or(AngleUnit::kRadians));
  check_floating("scores", p.scores.dtype);
  check_floating("pred", p.pred.dtype);
  check_floating("points", p.points.dtype);
  check_indices("offsets", p.offsets);
  check_indices("labels", p.labels);
  check_indices("index", p.index);
  check(p.topk >= 1, "topk is ", p.topk, "; it must be at least 1");
  check(p.topk2.value_or(1) >= 1, "topk2 is ", p.topk2.value_or(1), "; it must be at least 1");
  check_not_negative("alpha", p.alpha, compute);
  check_not_negative("beta", p.beta, compute);
  check_not_negative("min_side", p.min_side, compute);
  const double small_side = p.small_side.value_or(p.min_side);
  check_not_negative("small_side", small_side, compute);
  check(p.min_side == 0 || small_side <= p.min_side, "small_side is ", small_side,
        "; it must be at most min_side, ", p.min_side);
}

std::size_t task_aligned_match_workspace_bytes(const Implementation& implementation,
                                               const TaskAlignedProblem& problem) {
  const bool is_rotated = problem.angle_unit.has_value();
  const auto& served = served_by(implementation, problem);
  check_served(implementation, is_rotated ? "rotated_task_aligned_match" : "task_aligned_match",
               served.run != nullptr, problem.device);
  check_options(problem);
  check_boxes("pred", problem.pred, is_rotated ? 5 : 4);
  check_boxes("target", problem.target, is_rotated ? 5 : 4);
  check_shape(problem);
  check_scores(problem);
  check_points(problem);
  check_given("labels", problem.labels, !is_unread(problem), "an integer for each row of target");
  if (is_unread(problem)) return 0;
  TaskAlignedProblem marked = problem;
  mark_if_given(marked.offsets);
  return bytes_of(served, marked);
}

void task_aligned_match(const Implementation& implementation, const TaskAlignedProblem& problem,
                        const TaskAlignedOutputs& outputs, const Execution& execution) {
  check_call(task_aligned_match_workspace_bytes, implementation, problem, execution);
  check_pointers(problem);
  check_outputs(problem, outputs);
  served_by(implementation, problem).run(problem, outputs, execution);
}

}  // namespace boxloss
