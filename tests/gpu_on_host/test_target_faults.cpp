// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/target_faults.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstdint>
#include <gpu_runtime.hpp>
#include <vector>

/// That all threads look for faults. What a fault is, is core's, and tested there.
namespace boxloss::gpu_on_host {
namespace {

/// In so many rows, of which that one, if any, has a wrong label.
bool finds_fault(std::int64_t rows, std::int64_t wrong) {
  const std::vector<float> boxes(static_cast<std::size_t>(4 * rows), 1);
  std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
  if (wrong >= 0) labels[static_cast<std::size_t>(wrong)] = -1;
  TargetProblem p;
  p.rows = rows;
  p.boxes = {boxes.data(), DType::kF32};
  p.labels = {labels.data(), DType::kI64};
  float factor = 7, answer = 7;
  target_faults(implementations().front(), p, {&factor, &answer}, {});
  REQUIRE((factor == 1 || std::isnan(factor)));
  REQUIRE((answer == factor || (std::isnan(answer) && std::isnan(factor))));
  return std::isnan(factor);
}

TEST_CASE("target_faults: a fault in any row is found, and is not the next block's") {
  set_hardware(GENERATE(32u, 64u), GENERATE(1u, 2u, 3u));
  for (const std::int64_t rows : {1, 31, 255, 256, 257, 700, 1025}) {
    for (const std::int64_t wrong : {std::int64_t{0}, rows / 2, rows - 1}) {
      CAPTURE(rows, wrong);
      REQUIRE(finds_fault(rows, wrong));
      REQUIRE_FALSE(finds_fault(rows, -1));
    }
  }
  REQUIRE_FALSE(finds_fault(0, -1));
}

}  // namespace
}  // namespace boxloss::gpu_on_host
