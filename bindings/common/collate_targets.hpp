// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/collate_targets.hpp>
#include <vector>

#include "arguments.hpp"

namespace boxloss::binding {

/// A batch's ground truth, for boxloss.torch.compat.
struct CollateTargets {
  static constexpr char kFunction[] = "_collate_targets", kOperator[] = "boxloss::_collate_targets";
  static constexpr std::array kOutputs = {"boxes", "labels", "offsets", "factor", "number"};
  BOXLOSS_ARGUMENTS(BOXLOSS_COLLATE_TARGETS_PARAMETERS);

  /// Core's problem with what it points to.
  struct Problem : CollateProblem {
    std::vector<TargetList> own_lists;
    float* answer = nullptr;

    friend void check_options(const Problem&) {}
  };

  template <class Size>
  static Problem describe(const Arguments<Described<Size>>& a) {
    check(a.labels.size() == a.boxes.size(), "boxes are ", a.boxes.size(), " tensors, labels ",
          a.labels.size(), "; they must be as many");
    check(a.images >= 0, "images is ", a.images, "; it must not be negative");
    Problem p;
    p.boxes_dtype = dtype_of(a.boxes[0]);
    p.labels_dtype = index_dtype_of(a.labels[0]);
    p.image = view_of(a.image, kDTypes);
    p.images = a.images;
    p.classes = a.classes;
    p.has_sizes = a.has_sizes;
    p.answer = a.answer.data;
    for (std::size_t i = 0; i < a.boxes.size(); ++i) {
      const auto &boxes = a.boxes[i], &labels = a.labels[i];
      for (const auto& [each, first] :
           {std::tie(boxes, a.boxes[0]), std::tie(labels, a.labels[0])}) {
        check_dtype(each.dtype == first.dtype, each.name, " differ in dtype");
      }
      check_shape_is(boxes, boxes.rank == 2 && Compare<Size>::equal(boxes.size(1), 4), "(rows, 4)");
      check_shape(labels, {boxes.size(0)}, "a label for each box");
      if constexpr (kHasNumbers<Size>) {
        p.own_lists.push_back({boxes.data, labels.data, boxes.size(0)});
      }
    }
    if (a.image) check_shape(a.image, {rows_of(a)}, "an image for each box");
    return p;
  }

  template <class Size>
  static std::array<Output<Size>, 5> outputs(const Arguments<Described<Size>>& a,
                                             const Problem& p) {
    const Size rows = rows_of(a);
    return {{{p.boxes_dtype, {rows, Size(4)}},
             {DType::kI64, {rows}},
             {DType::kI64, {Size(a.images + 1)}},
             {DType::kF32, {}},
             {DType::kF32, {}}}};
  }

  static std::size_t workspace_bytes(const Implementation&, const Problem&) { return 0; }
  static void run(const Implementation& implementation, Problem& p,
                  const std::array<void*, 5>& outputs, const Execution& execution) {
    p.lists = p.own_lists.data();
    p.list_count = static_cast<std::int64_t>(p.own_lists.size());
    collate_targets(
        implementation, p,
        {outputs[0], static_cast<std::int64_t*>(outputs[1]), static_cast<std::int64_t*>(outputs[2]),
         static_cast<float*>(outputs[3]), static_cast<float*>(outputs[4]), p.answer},
        execution);
  }

 private:
  /// Of all lists.
  template <class Size>
  static Size rows_of(const Arguments<Described<Size>>& a) {
    Size rows = 0;
    for (const auto& each : a.boxes) rows += each.size(0);
    return rows;
  }
};

}  // namespace boxloss::binding
