// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/max_iou_match.hpp>
#include <boxloss/registry.hpp>
#include <limits>

#include "src/checks.hpp"

namespace boxloss {
namespace {

/// Whether nothing is read: there are no pairs.
bool is_empty(const MaxIouProblem& p) {
  return p.anchors.images == 0 || p.anchors.slots == 0 || p.target.slots == 0;
}

void check_shape(const MaxIouProblem& p) {
  check(p.anchors.rows.data == nullptr && p.target.rows.data == nullptr,
        "anchors.rows and target.rows must be null for a matching");
  check(p.anchors.format == BoxFormat::kXyxy && p.target.format == BoxFormat::kXyxy, "anchors are ",
        shown(p.anchors.format), " and target ", shown(p.target.format), "; both must be xyxy");
  check(p.target.images == 1, "target must be one image of T slots, but has ", p.target.images,
        " images");
  // What one problem has are 32-bit numbers.
  constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();
  check(p.anchors.slots <= kMost32 && p.target.slots <= kMost32, "there are ", p.anchors.slots,
        " anchors and ", p.target.slots, " boxes; there can be 2^31 - 1 of each");
  check(p.offsets.data != nullptr || is_empty(p),
        "offsets is null; it must point to (images + 1) integers");
}

MaxIouProblem with_arrays(MaxIouProblem p, const MaxIouArrays& arrays) {
  const bool is_read = !is_empty(p);
  set_array("anchors", p.anchors, arrays.anchors, is_read);
  set_array("target", p.target, arrays.target, is_read);
  set_array("offsets", p.offsets, arrays.offsets, is_read);
  return p;
}

}  // namespace

DType compute_dtype(const MaxIouProblem& problem) {
  const bool is_f64 = problem.anchors.dtype == DType::kF64 || problem.target.dtype == DType::kF64;
  return is_f64 ? DType::kF64 : DType::kF32;
}

void check_options(const MaxIouProblem& p) {
  check_enumerator("low_quality", "", p.low_quality);
  check_floating("anchors", p.anchors.dtype);
  check_indices("offsets", p.offsets);
  check_indices("index", p.index);
  check(p.low <= p.high, "low is ", p.low, " and high ", p.high,
        "; low must not be more than high, and neither NaN");
  check(p.min_pos_iou == p.min_pos_iou, "min_pos_iou is NaN; it must be a number");
}

MaxIouArrays arrays_of(const MaxIouProblem& p) {
  return {p.anchors.data, p.target.data, p.offsets.data};
}

MaxIouPlan::MaxIouPlan(const Implementation& implementation, const MaxIouProblem& problem)
    : implementation_(&implementation), problem_(problem) {
  check_served(implementation, "max_iou_match", implementation.max_iou_match.run != nullptr,
               problem.device);
  check_boxes("anchors", problem.anchors);
  check_boxes("target", problem.target);
  check_options(problem);
  check_shape(problem);
}

std::size_t MaxIouPlan::workspace_bytes() const {
  return is_empty(problem_) ? 0 : implementation_->max_iou_match.workspace_bytes(problem_);
}

void MaxIouPlan::run(const MaxIouArrays& arrays, const MaxIouOutputs& outputs,
                     const Execution& execution) const {
  check_aligned("outputs.target_index", outputs.target_index, problem_.index);
  check_aligned("outputs.iou", outputs.iou, compute_dtype(problem_));
  check_execution(execution, problem_.device, workspace_bytes());
  implementation_->max_iou_match.run(with_arrays(problem_, arrays), outputs, execution);
}

std::size_t max_iou_match_workspace_bytes(const Implementation& implementation,
                                          const MaxIouProblem& problem) {
  return MaxIouPlan(implementation, problem).workspace_bytes();
}

void max_iou_match(const Implementation& implementation, const MaxIouProblem& problem,
                   const MaxIouOutputs& outputs, const Execution& execution) {
  MaxIouPlan(implementation, problem).run(arrays_of(problem), outputs, execution);
}

}  // namespace boxloss
