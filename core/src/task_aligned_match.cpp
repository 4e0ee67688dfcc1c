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
  const bool is_padded = p.offsets.data == nullptr;
  check(
      p.target.images == (is_padded ? p.images : 1), "target has ", p.target.images,
      " images; it must have ", is_padded ? p.images : 1,
      is_padded ? ", one for each image, without offsets" : ", a list of all boxes, with offsets");
  check(p.pred.rows.data == nullptr && p.target.rows.data == nullptr,
        "pred.rows and target.rows must be null for a task-aligned match");
  check(p.target.format == BoxFormat::kXyxy, "target is ", shown(p.target.format),
        "; it must be xyxy");
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
  check(scores.image_stride >= 0 && scores.anchor_stride >= 0 && scores.class_stride >= 0,
        "scores has a negative stride: ", scores.image_stride, " by image, ", scores.anchor_stride,
        " by anchor, ", scores.class_stride, " by class");
  check(scores.data != nullptr || is_unread(p), "scores.data is null");
}

void check_points(const TaskAlignedProblem& p) {
  const PointView& points = p.points;
  check(points.image_stride >= 0 && points.anchor_stride >= 0 && points.coordinate_stride >= 0,
        "points has a negative stride: ", points.image_stride, " by image, ", points.anchor_stride,
        " by anchor, ", points.coordinate_stride, " by coordinate");
  check(points.data != nullptr || is_unread(p), "points.data is null");
}

void check_not_negative(const char* name, double value, DType compute) {
  const double most = compute == DType::kF64 ? std::numeric_limits<double>::max()
                                             : std::numeric_limits<float>::max();
  check(value >= 0 && value <= most, name, " is ", value,
        "; it must be finite and not negative, as a ", name_of(compute));
}

TaskAlignedProblem with_arrays(TaskAlignedProblem p, const TaskAlignedArrays& arrays) {
  const bool is_read = !is_unread(p);
  set_array("scores", p.scores, arrays.scores, is_read);
  set_array("pred", p.pred, arrays.pred, is_read);
  set_array("points", p.points, arrays.points, is_read);
  set_array("target", p.target, arrays.target, is_read);
  set_array("offsets", p.offsets, arrays.offsets, is_read);
  set_array("labels", p.labels, arrays.labels, is_read);
  return p;
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

TaskAlignedArrays arrays_of(const TaskAlignedProblem& p) {
  return {p.scores.data, p.pred.data, p.points.data, p.target.data, p.offsets.data, p.labels.data};
}

TaskAlignedPlan::TaskAlignedPlan(const Implementation& implementation,
                                 const TaskAlignedProblem& problem)
    : implementation_(&implementation), problem_(problem) {
  check_served(implementation, "task_aligned_match",
               implementation.task_aligned_match.run != nullptr, problem.device);
  check_options(problem);
  check_boxes("pred", problem.pred);
  check_boxes("target", problem.target);
  check_shape(problem);
  check_scores(problem);
  check_points(problem);
  check(problem.labels.data != nullptr || is_unread(problem),
        "labels is null; it must point to an integer for each row of target");
}

std::size_t TaskAlignedPlan::workspace_bytes() const {
  return is_unread(problem_) ? 0 : implementation_->task_aligned_match.workspace_bytes(problem_);
}

void TaskAlignedPlan::run(const TaskAlignedArrays& arrays, const TaskAlignedOutputs& outputs,
                          const Execution& execution) const {
  const bool are_written = !is_empty(problem_);
  check(outputs.target_index != nullptr || !are_written, "outputs.target_index is null");
  check(outputs.score != nullptr || !are_written, "outputs.score is null");
  check(outputs.overlap != nullptr || !are_written, "outputs.overlap is null");
  check_aligned("outputs.target_index", outputs.target_index, problem_.index);
  check_aligned("outputs.score", outputs.score, DType::kF32);
  check_aligned("outputs.overlap", outputs.overlap, DType::kF32);
  check_execution(execution, problem_.device, workspace_bytes());
  implementation_->task_aligned_match.run(with_arrays(problem_, arrays), outputs, execution);
}

std::size_t task_aligned_workspace_bytes(const Implementation& implementation,
                                         const TaskAlignedProblem& problem) {
  return TaskAlignedPlan(implementation, problem).workspace_bytes();
}

void task_aligned_match(const Implementation& implementation, const TaskAlignedProblem& problem,
                        const TaskAlignedOutputs& outputs, const Execution& execution) {
  TaskAlignedPlan(implementation, problem).run(arrays_of(problem), outputs, execution);
}

}  // namespace boxloss
