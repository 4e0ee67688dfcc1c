// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/collate_targets.hpp>
#include <boxloss/registry.hpp>

#include "src/checks.hpp"

namespace boxloss {
namespace {

/// All lists' rows.
std::int64_t check_lists(const CollateProblem& p) {
  check(p.list_count >= 0, "list_count is ", p.list_count, "; it must not be negative");
  check(p.lists != nullptr || p.list_count == 0,
        "lists is null; it must point to (list_count) lists");
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < p.list_count; ++i) {
    const TargetList& list = p.lists[i];
    check(list.rows >= 0 && list.rows <= kMostBoxes - rows, "lists[", i, "].rows is ", list.rows,
          "; it must not be negative, nor all rows more than 64 bits can count the bytes of");
    check((list.boxes != nullptr && list.labels != nullptr) || list.rows == 0, "lists[", i,
          "] has a null pointer and ", list.rows, " rows");
    check_aligned("boxes", list.boxes, p.boxes_dtype);
    check_aligned("labels", list.labels, p.labels_dtype);
    rows += list.rows;
  }
  return rows;
}

/// All lists' rows.
std::int64_t check_problem(const CollateProblem& p) {
  check_enumerator<Unsupported>("boxes_dtype", "", p.boxes_dtype);
  check_indices("labels", p.labels_dtype);
  if (is_given(p.image)) check_enumerator<Unsupported>("image", ".dtype", p.image.dtype);
  check(p.classes >= 0, "classes is ", p.classes,
        "; it must not be negative, and 0 if it is unknown");
  check(p.images >= 0 && p.images < kMostBoxes, "images is ", p.images,
        "; it must not be negative, nor more than 64 bits can count the bytes of");
  check(is_given(p.image) || p.images == p.list_count, "images is ", p.images, ", list_count is ",
        p.list_count, "; without `image` each list is an image");
  const std::int64_t rows = check_lists(p);
  check_pointer("image", p.image, rows > 0);
  return rows;
}

void check_outputs(const CollateOutputs& outputs, DType boxes_dtype, bool has_rows) {
  check_data("outputs.boxes", outputs.boxes, boxes_dtype, has_rows);
  check_data("outputs.labels", outputs.labels, DType::kI64, has_rows);
  check_data("outputs.offsets", outputs.offsets, DType::kI64, true);
  check_data("outputs.factor", outputs.factor, DType::kF32, true);
  check_data("outputs.number", outputs.number, DType::kF32, true);
  check_aligned("outputs.answer", outputs.answer, DType::kF32);
}

}  // namespace

void collate_targets(const Implementation& implementation, const CollateProblem& problem,
                     const CollateOutputs& outputs, const Execution& execution) {
  check_served(implementation, "collate_targets", implementation.collate_targets.run != nullptr,
               problem.device);
  const std::int64_t rows = check_problem(problem);
  check_outputs(outputs, problem.boxes_dtype, rows > 0);
  implementation.collate_targets.run(problem, outputs, execution);
}

}  // namespace boxloss
