// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/registry.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace boxloss::conformance {

/// In so many rows of so many lists, of which that row, if any, has a wrong label. Lists lie in
/// memory from the last to the first, so that whoever reads beyond one finds other rows.
inline bool finds_fault_in(const Implementation& implementation, std::int64_t rows,
                           std::int64_t list_count, std::int64_t wrong) {
  std::vector<float> boxes(static_cast<std::size_t>(4 * rows)), stored_boxes(boxes.size());
  std::vector<std::int64_t> labels(static_cast<std::size_t>(rows)), stored_labels(labels.size());
  std::iota(boxes.begin(), boxes.end(), 0.0f);
  std::iota(labels.begin(), labels.end(), std::int64_t{0});
  if (wrong >= 0) labels[static_cast<std::size_t>(wrong)] = -1;
  std::vector<TargetList> lists;
  std::vector<std::int64_t> ends = {0};
  for (std::int64_t list = 1; list <= list_count; ++list) {
    const std::int64_t begin = ends.back(), end = rows * list / list_count;
    float* const own_boxes = stored_boxes.data() + 4 * (rows - end);
    std::int64_t* const own_labels = stored_labels.data() + (rows - end);
    std::copy(boxes.begin() + 4 * begin, boxes.begin() + 4 * end, own_boxes);
    std::copy(labels.begin() + begin, labels.begin() + end, own_labels);
    lists.push_back({own_boxes, own_labels, end - begin});
    ends.push_back(end);
  }
  CollateProblem p;
  p.lists = lists.data();
  p.list_count = p.images = list_count;
  std::vector<float> all_boxes(boxes.size());
  std::vector<std::int64_t> all_labels(labels.size()), offsets(ends.size(), 7);
  float factor = 7, number = 7, answer = 7;
  collate_targets(implementation, p,
                  {all_boxes.data(), all_labels.data(), offsets.data(), &factor, &number, &answer},
                  {});
  REQUIRE(all_boxes == boxes);
  REQUIRE(offsets == ends);
  if (wrong >= 0) labels[static_cast<std::size_t>(wrong)] = 0;
  REQUIRE(all_labels == labels);
  REQUIRE((factor == 1 || std::isnan(factor)));
  for (const float each : {number, answer}) REQUIRE(std::isnan(each) == std::isnan(factor));
  if (std::isnan(factor)) return true;
  REQUIRE(answer == 1);
  REQUIRE(number == static_cast<float>(std::max<std::int64_t>(rows, 1)));
  return false;
}

/// That all threads take part: a fault in any row is found, and is not the next ones'. More lists
/// than a kernel's parameters hold are several launches, some of whose lists have no rows.
inline void check_collated_rows(const Implementation& implementation) {
  CAPTURE(implementation.name);
  for (const std::int64_t lists : {1, 2, 127, 128, 129, 256, 300}) {
    for (const std::int64_t rows : {1, 31, 255, 256, 257, 700, 1025}) {
      for (const std::int64_t wrong : {std::int64_t{0}, rows / 2, rows - 1}) {
        CAPTURE(lists, rows, wrong);
        REQUIRE(finds_fault_in(implementation, rows, lists, wrong));
        REQUIRE_FALSE(finds_fault_in(implementation, rows, lists, -1));
      }
    }
    REQUIRE_FALSE(finds_fault_in(implementation, 0, lists, -1));
  }
  REQUIRE_FALSE(finds_fault_in(implementation, 0, 0, -1));
}

}  // namespace boxloss::conformance
