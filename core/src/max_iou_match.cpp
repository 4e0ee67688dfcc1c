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

const auto& served_by(const Implementation& implementation, const MaxIouProblem& p) {
  return p.angle_unit.has_value() ? implementation.rotated_max_iou_match
                                  : implementation.max_iou_match;
}

void check_shape(const MaxIouProblem& p) {
  check(!is_given(p.anchors.rows) && !is_given(p.target.rows),
        "anchors.rows and target.rows must not be given for a matching");
  check(p.angle_unit.has_value() ||
            (p.anchors.format == BoxFormat::kXyxy && p.target.format == BoxFormat::kXyxy),
        "anchors are ", shown(p.anchors.format), " and target ", shown(p.target.format),
        "; both must be xyxy");
  check(p.target.images == 1, "target must be one image of T slots, but has ", p.target.images,
        " images");
  // What one problem has are 32-bit numbers.
  constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();
  check(p.anchors.slots <= kMost32 && p.target.slots <= kMost32, "there are ", p.anchors.slots,
        " anchors and ", p.target.slots, " boxes; there can be 2^31 - 1 of each");
  check_given("offsets", p.offsets, !is_empty(p), "(images + 1) integers");
}

}  // namespace

DType compute_dtype(const MaxIouProblem& problem) {
  const bool is_f64 = problem.anchors.dtype == DType::kF64 || problem.target.dtype == DType::kF64;
  return is_f64 ? DType::kF64 : DType::kF32;
}

void check_options(const MaxIouProblem& p) {
  check_enumerator("low_quality", "", p.low_quality);
  check_enumerator("angle_unit", "", p.angle_unit.value_or(AngleUnit::kRadians));
  check_floating("anchors", p.anchors.dtype);
  check_indices("offsets", p.offsets);
  check_indices("index", p.index);
  check(p.low <= p.high, "low is ", p.low, " and high ", p.high,
        "; low must not be more than high, and neither NaN");
  check(p.min_pos_iou == p.min_pos_iou, "min_pos_iou is NaN; it must be a number");
}

std::size_t max_iou_match_workspace_bytes(const Implementation& implementation,
                                          const MaxIouProblem& p) {
  const bool is_rotated = p.angle_unit.has_value();
  const auto& served = served_by(implementation, p);
  check_served(implementation, is_rotated ? "rotated_max_iou_match" : "max_iou_match",
               served.run != nullptr, p.device);
  check_boxes("anchors", p.anchors, is_rotated ? 5 : 4);
  check_boxes("target", p.target, is_rotated ? 5 : 4);
  check_options(p);
  check_shape(p);
  return is_empty(p) ? 0 : bytes_of(served, p);
}

void max_iou_match(const Implementation& implementation, const MaxIouProblem& p,
                   const MaxIouOutputs& outputs, const Execution& execution) {
  check_call(max_iou_match_workspace_bytes, implementation, p, execution);
  const bool is_read = !is_empty(p);
  check_pointers("anchors", "anchors.rows", p.anchors, is_read);
  check_pointers("target", "target.rows", p.target, is_read);
  check_pointer("offsets", p.offsets, is_read);
  check_aligned("outputs.target_index", outputs.target_index, p.index);
  check_aligned("outputs.iou", outputs.iou, compute_dtype(p));
  served_by(implementation, p).run(p, outputs, execution);
}

}  // namespace boxloss
