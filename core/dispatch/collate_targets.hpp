// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/collate_targets.hpp>

#include "../kernels/collate_targets.hpp"

namespace boxloss {

/// Calls `run` with the arguments and some of the lists, in their order, until all had their turn;
/// at least once.
template <class Run>
void collate_by(const CollateProblem& p, const CollateOutputs& outputs, const Run& run) {
  CollateArgs args = {p.boxes_dtype,
                      p.labels_dtype == DType::kI64,
                      elements<Any>(p.image.data, p.image.dtype),
                      0,
                      p.images,
                      p.classes,
                      p.has_sizes,
                      outputs.boxes,
                      outputs.labels,
                      outputs.offsets,
                      outputs.factor,
                      outputs.number,
                      outputs.answer};
  for (std::int64_t i = 0; i < p.list_count; ++i) args.rows += p.lists[i].rows;
  TargetLists lists = {};
  do {
    const TargetList* const some = p.lists + lists.first_list;
    lists.count =
        static_cast<int>(std::min<std::int64_t>(p.list_count - lists.first_list, kMostLists));
    lists.is_last = lists.first_list + lists.count == p.list_count;
    for (int i = 0; i < lists.count; ++i) {
      lists.boxes[i] = some[i].boxes;
      lists.labels[i] = some[i].labels;
      lists.first_row[i + 1] = lists.first_row[i] + some[i].rows;
    }
    run(args, lists);
    lists.first_list += lists.count;
    lists.first_row[0] = lists.first_row[lists.count];
  } while (!lists.is_last);
}

}  // namespace boxloss
