// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/target_faults.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <gpu_runtime.hpp>
#include <limits>
#include <vector>

namespace boxloss::gpu_on_host {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Rows of several images, in arrays of just their size.
struct Rows {
  std::vector<float> boxes;
  std::vector<std::int64_t> labels;
  std::vector<std::int32_t> image;

  explicit Rows(std::int64_t rows) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (const int value : {1, 2, 3, 2}) boxes.push_back(static_cast<float>(value));
      labels.push_back(i % 5);
      image.push_back(static_cast<std::int32_t>(i / 7));
    }
  }
};

bool finds_fault(const Implementation& implementation, const Rows& rows) {
  TargetProblem p;
  p.rows = static_cast<std::int64_t>(rows.labels.size());
  p.boxes = {rows.boxes.data(), DType::kF32};
  p.labels = {rows.labels.data(), DType::kI64};
  p.image = {rows.image.data(), DType::kI32};
  p.classes = 5;
  float numbers[] = {7, 7, 7};
  target_faults(implementation, p, {&numbers[0], &numbers[1]}, {});
  REQUIRE(numbers[2] == 7);
  REQUIRE((numbers[0] == 1 || std::isnan(numbers[0])));
  REQUIRE(std::isnan(numbers[0]) == std::isnan(numbers[1]));
  float factor = 7;
  target_faults(implementation, p, {&factor, nullptr}, {});
  REQUIRE(std::isnan(factor) == std::isnan(numbers[1]));
  return std::isnan(factor);
}

bool finds_fault(const Rows& rows) {
  static const Implementation self = implementations().front();
  const bool found = finds_fault(self, rows);
  REQUIRE(found == finds_fault(implementation("cpu/native"), rows));
  return found;
}

TEST_CASE("target_faults: a fault in any row is found, however many there are") {
  for (const std::int64_t rows : {1, 31, 255, 256, 257, 700, 1025}) {
    set_hardware(rows % 2 == 0 ? 32 : 64, static_cast<unsigned>(rows));
    CAPTURE(rows);
    const Rows right(rows);
    REQUIRE_FALSE(finds_fault(right));
    for (const std::int64_t at : {std::int64_t{0}, rows / 2, rows - 1}) {
      CAPTURE(at);
      const auto row = static_cast<std::size_t>(at);
      Rows wrong = right;
      wrong.boxes[4 * row + 3] = kNan;
      REQUIRE(finds_fault(wrong));
      wrong = right;
      wrong.boxes[4 * row + 2] = 0;
      REQUIRE(finds_fault(wrong));
      wrong = right;
      wrong.labels[row] = 5;
      REQUIRE(finds_fault(wrong));
      wrong = right;
      wrong.image[row] = row == 0 ? 1 : -1;
      REQUIRE(finds_fault(wrong) == (rows > 1));
    }
  }
}

TEST_CASE("target_faults: a block's fault is not the next one's") {
  set_hardware(32);
  Rows rows(300);
  rows.labels[299] = -1;
  REQUIRE(finds_fault(rows));
  rows.labels[299] = 0;
  REQUIRE_FALSE(finds_fault(rows));
  REQUIRE_FALSE(finds_fault(Rows(0)));
}

}  // namespace
}  // namespace boxloss::gpu_on_host
