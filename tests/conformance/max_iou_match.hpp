// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/max_iou_match.hpp>

#include "operation.hpp"

namespace boxloss::conformance {

/// Where anchors lie.
enum class AnchorPlaces {
  kGrid,       ///< on two grids of 8 and 16, three to a cell
  kScattered,  ///< anywhere, as the boxes
  kEndless,    ///< strips without end, as the boxes
};

struct MaxIouShape {
  std::int64_t images, anchors, boxes;
};

struct Thresholds {
  double high, low;
};

/// One line of the table.
struct MatchCase {
  std::string name;
  DType anchor_dtype, target_dtype;
  Layout anchor_layout, target_layout;
  DType offsets, index;
  MaxIouShape shape;
  Thresholds at;
  LowQuality low_quality;
  double min_pos_iou = 0;
  AnchorPlaces anchors = AnchorPlaces::kGrid;
  Values values = Values::kPlain;
  std::vector<std::int64_t> indices = {};  ///< the offsets, if they are not random
  std::optional<AngleUnit> angle_unit = {};
};

/// A problem of a matching on the host, with the arrays that it points to. Every array ends with
/// the last element that may be read.
struct HostMatch {
  MaxIouProblem problem;
  Array anchors, target, offsets;
};

/// Max-IoU matching: see operations.hpp.
struct MaxIouMatch {
  using Case = MatchCase;
  using Host = HostMatch;
  static constexpr const char* kName = "max_iou_match";
  static constexpr const char *kPlainCase = "argmax", *kNanCase = "special, argmax";
  static constexpr int kMixes = 400;

  static bool is_served(const Implementation& each) { return each.max_iou_match.run != nullptr; }
  static const std::vector<Case>& table();
  static std::vector<CaseGroup<Case>> groups() { return {{kEveryCase, table()}}; }
  static MoreCases<Case> more_cases();
  static Case random_case(Random& random);
  static std::string describe(const Case& c);

  /// Of plain boxes one in three is an anchor, a part of one, or far from all. Boxes of no image
  /// are NaN.
  static Host make(const Case& c, Random& random);
  static std::vector<Call> calls(const Case& c, const Host& host, Random& random);
};

}  // namespace boxloss::conformance
