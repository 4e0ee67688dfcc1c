// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace boxloss::conformance {

/// In so many rows of two lists, of which that row, if any, has a wrong label.
inline bool finds_fault_in(const Implementation& implementation, std::int64_t rows,
                           std::int64_t wrong) {
  std::vector<float> boxes(static_cast<std::size_t>(4 * rows), 1);
  std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
  std::iota(boxes.begin(), boxes.end(), 0.0f);
  std::iota(labels.begin(), labels.end(), std::int64_t{0});
  if (wrong >= 0) labels[static_cast<std::size_t>(wrong)] = -1;
  const std::int64_t half = rows / 2;
  const TargetList lists[] = {{boxes.data(), labels.data(), half},
                              {boxes.data() + 4 * half, labels.data() + half, rows - half}};
  CollateProblem p;
  p.lists = lists;
  p.list_count = p.images = 2;
  std::vector<float> all_boxes(boxes.size());
  std::vector<std::int64_t> all_labels(labels.size()), offsets(3, 7);
  float factor = 7, number = 7, answer = 7;
  collate_targets(implementation, p,
                  {all_boxes.data(), all_labels.data(), offsets.data(), &factor, &number, &answer},
                  {});
  REQUIRE(all_boxes == boxes);
  REQUIRE(offsets == std::vector<std::int64_t>{0, half, rows});
  if (wrong >= 0) labels[static_cast<std::size_t>(wrong)] = 0;
  REQUIRE(all_labels == labels);
  REQUIRE((factor == 1 || std::isnan(factor)));
  REQUIRE((answer == factor || (std::isnan(answer) && std::isnan(factor))));
  return std::isnan(factor);
}

/// That all threads take part: a fault in any row is found, and is not the next ones'.
inline void check_collated_rows(const Implementation& implementation) {
  CAPTURE(implementation.name);
  for (const std::int64_t rows : {1, 31, 255, 256, 257, 700, 1025}) {
    for (const std::int64_t wrong : {std::int64_t{0}, rows / 2, rows - 1}) {
      CAPTURE(rows, wrong);
      REQUIRE(finds_fault_in(implementation, rows, wrong));
      REQUIRE_FALSE(finds_fault_in(implementation, rows, -1));
    }
  }
  REQUIRE_FALSE(finds_fault_in(implementation, 0, -1));
}

}  // namespace boxloss::conformance
