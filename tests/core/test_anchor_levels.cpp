// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/anchor_level.hpp>
#include <boxloss/error.hpp>
#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <limits>
#include <string>
#include <vector>

#include "conformance/random.hpp"
#include "kernels/anchor_grid.hpp"

namespace boxloss {
namespace {

using Catch::Matchers::Message;
using conformance::Random;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

/// Two levels of 24 and 4 anchors.
AnchorLevels two_levels() {
  AnchorLevels levels;
  levels.count = 2;
  levels.level[0] = {0, 3, 4, 2, 8, 8};
  levels.level[1] = {24, 2, 2, 1, 16, 16};
  return levels;
}

TEST_CASE("levels that hold the anchors are not refused") {
  REQUIRE_NOTHROW(check_levels(two_levels(), 28));
  REQUIRE_NOTHROW(check_levels(AnchorLevels(), 28));
  REQUIRE_NOTHROW(check_levels(AnchorLevels(), 0));
}

TEST_CASE("levels that do not hold the anchors are refused") {
  const auto refusal = [](const auto& spoil, std::int64_t anchors, const std::string& text) {
    AnchorLevels levels = two_levels();
    spoil(levels);
    REQUIRE_THROWS_MATCHES(check_levels(levels, anchors), InvalidArgument, Message(text));
  };
  const auto none = [](AnchorLevels&) {};
  refusal(none, 27, "levels[1] has 2 rows of 2 cells of 1 anchors, but only 3 anchors are left");
  refusal(none, 29, "levels have 28 anchors, but there are 29");
  refusal(none, 0, "levels[0] has 3 rows of 4 cells of 2 anchors, but only 0 anchors are left");
  refusal([](AnchorLevels& l) { l.count = -1; }, 28, "there are -1 levels; there can be 16");
  refusal([](AnchorLevels& l) { l.count = 17; }, 28, "there are 17 levels; there can be 16");
  refusal([](AnchorLevels& l) { l.level[0].first = 1; }, 28,
          "levels[0] begins with anchor 1; it must begin with 0, behind those before it");
  refusal([](AnchorLevels& l) { l.level[1].first = 23; }, 28,
          "levels[1] begins with anchor 23; it must begin with 24, behind those before it");
  const std::string at_least_1 = " anchors per cell; each must be at least 1";
  refusal([](AnchorLevels& l) { l.level[1].rows = 0; }, 28,
          "levels[1] has 0 rows, 2 columns and 1" + at_least_1);
  refusal([](AnchorLevels& l) { l.level[1].columns = -2; }, 28,
          "levels[1] has 2 rows, -2 columns and 1" + at_least_1);
  refusal([](AnchorLevels& l) { l.level[1].per_cell = 0; }, 28,
          "levels[1] has 2 rows, 2 columns and 0" + at_least_1);
  refusal([](AnchorLevels& l) { l.level[0].stride_y = 0; }, 28,
          "levels[0] has strides 0 and 8; they must be finite and more than 0");
  refusal([](AnchorLevels& l) { l.level[0].stride_x = -8; }, 28,
          "levels[0] has strides 8 and -8; they must be finite and more than 0");
  refusal([](AnchorLevels& l) { l.level[0].stride_x = kEndless; }, 28,
          "levels[0] has strides 8 and inf; they must be finite and more than 0");
  refusal([](AnchorLevels& l) { l.level[0].stride_y = kNan; }, 28,
          "levels[0] has strides nan and 8; they must be finite and more than 0");
  // Whose product would not fit.
  AnchorLevels huge;
  huge.count = 1;
  huge.level[0] = {0, kHuge, kHuge, kHuge, 1, 1};
  REQUIRE_THROWS_AS(check_levels(huge, kHuge), InvalidArgument);
}

constexpr AnchorLevel kLevel = {0, 6, 10, 1, 8, 8};

/// Anchors of 16 x 8 around the middle of each cell.
Reach usual_reach() { return {-4, 0, 12, 8}; }

void require_range(CellRange got, std::int64_t begin, std::int64_t end) {
  REQUIRE(got.begin == begin);
  REQUIRE(got.end == end);
}

TEST_CASE("a box touches the cells whose anchors reach it") {
  const Box<double> box = {21, 17, 43, 23};
  require_range(columns_near(kLevel, usual_reach(), box), 2, 6);  // 28 - 16 < 21, 36 < 43 < 44
  require_range(rows_near(kLevel, usual_reach(), box), 2, 3);
  const Box<double> outside = {-30, 100, -20, 200};
  require_range(columns_near(kLevel, usual_reach(), outside), 0, 0);
  require_range(rows_near(kLevel, usual_reach(), outside), 6, 6);
  const Box<double> all = {-1e300, -1e300, 1e300, 1e300};
  require_range(columns_near(kLevel, usual_reach(), all), 0, 10);
  require_range(rows_near(kLevel, usual_reach(), all), 0, 6);
}

TEST_CASE("a box that is not finite, or anchors that are not, may touch every cell") {
  for (const double wrong : {kNan, kEndless, -kEndless}) {
    require_range(columns_near(kLevel, usual_reach(), Box<double>{wrong, 0, 9, 9}), 0, 10);
    require_range(rows_near(kLevel, usual_reach(), Box<double>{0, 0, 9, wrong}), 0, 6);
    for (int i = 0; i < 4; ++i) {
      Box<double> anchor = {1, 2, 3, 4};
      (i == 0 ? anchor.x1 : i == 1 ? anchor.y1 : i == 2 ? anchor.x2 : anchor.y2) = wrong;
      Reach reach = usual_reach();
      add_to_reach(reach, kLevel, 2, 3, anchor);
      add_to_reach(reach, kLevel, 2, 3, Box<double>{1, 2, 3, 4});
      require_range(columns_near(kLevel, reach, Box<double>{1, 1, 2, 2}), 0, 10);
      require_range(rows_near(kLevel, reach, Box<double>{1, 1, 2, 2}), 0, 6);
    }
  }
}

TEST_CASE("the reach of anchors is the most of all") {
  Reach reach;
  add_to_reach(reach, kLevel, 2, 3, Box<float>{20, 16, 36, 24});  // the cell is at (24, 16)
  add_to_reach(reach, kLevel, 5, 9, Box<float>{75, 39, 76, 41});  // at (72, 40)
  REQUIRE(reach.left == -4);
  REQUIRE(reach.up == -1);
  REQUIRE(reach.right == 12);
  REQUIRE(reach.down == 8);
}

TEST_CASE("wherever anchors are, no cell that a box touches is left out") {
  Random random(Catch::getSeed());
  const auto sometimes = [&](double value) { return random.chance(0.5) ? value : 0; };
  for (int i = 0; i < 300; ++i) {
    const double size = random.pick(std::vector<double>{1e-3, 1, 1e4, 1e15});
    const AnchorLevel level = {0, 1 + random.below(5),    1 + random.below(5),
                               1, random.uniform(0.1, 9), random.uniform(0.1, 9)};
    const double wild = sometimes(size);  // the levels are not theirs
    const auto anchor_at = [&](std::int64_t row, std::int64_t column) {
      const double x = static_cast<double>(column) * level.stride_x + random.uniform(-1, 1) * wild;
      const double y = static_cast<double>(row) * level.stride_y + random.uniform(-1, 1) * wild;
      const double w = sometimes(random.uniform(0, 5)), h = random.uniform(0, 5);
      return Box<double>{x, y, x + w, y + h};
    };
    std::vector<Box<double>> anchors;
    Reach reach;
    for (std::int64_t row = 0; row < level.rows; ++row) {
      for (std::int64_t column = 0; column < level.columns; ++column) {
        anchors.push_back(anchor_at(row, column));
        add_to_reach(reach, level, row, column, anchors.back());
      }
    }
    for (std::int64_t cell = 0; cell < level.rows * level.columns; ++cell) {
      const Box<double>& anchor = anchors[static_cast<std::size_t>(cell)];
      // Touches it at the corners alone: nothing further away could.
      const Box<double> boxes[] = {{anchor.x1 - size, anchor.y1 - size, anchor.x1, anchor.y1},
                                   {anchor.x2, anchor.y2, anchor.x2 + size, anchor.y2 + size}};
      for (const Box<double>& box : boxes) {
        const CellRange rows = rows_near(level, reach, box);
        const CellRange columns = columns_near(level, reach, box);
        const std::int64_t row = cell / level.columns, column = cell % level.columns;
        REQUIRE((rows.begin <= row && row < rows.end));
        REQUIRE((columns.begin <= column && column < columns.end));
      }
    }
  }
}

}  // namespace
}  // namespace boxloss
