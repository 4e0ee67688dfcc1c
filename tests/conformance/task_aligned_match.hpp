// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/task_aligned_match.hpp>

#include "operation.hpp"

namespace boxloss::conformance {

/// What predictions, scores and ground-truth boxes are like.
enum class Anchors {
  kReal,      ///< no two alike; most predictions are near a ground-truth box
  kAlike,     ///< of a few kinds, as ground-truth boxes are: ties abound
  kWithNan,   ///< real ones, with NaN among all of them
  kInfinite,  ///< real ones, with infinite scores, whose results are NaN
  kWild,      ///< coordinates of any size, infinite ones among them
};

/// With padding, `boxes` are those of an image, else of all.
struct MatchShape {
  std::int64_t images, anchors, classes, boxes;
  bool is_padded = false;
};

struct MatchRule {
  std::int64_t topk = 10;
  std::optional<std::int64_t> topk2 = {};
  double alpha = 0.5, beta = 6, min_side = 0;
  std::optional<double> small_side = {};
};

struct MatchDTypes {
  DType scores, points, offsets, labels, index;
};

struct MatchLayouts {
  Layout scores, points;
};

/// One line of the table. Scores lie as boxes do: an anchor is a slot, a class a coordinate; points
/// likewise, with two coordinates.
struct TaskAlignedCase {
  std::string name;
  MatchDTypes dtypes;
  MatchLayouts layouts;
  Operand pred, target;
  MatchShape shape;
  MatchRule rule;
  Anchors values;
  std::vector<std::int64_t> indices = {};  ///< the offsets, if they are not random
  std::vector<std::int64_t> labels = {};   ///< if they are not random; repeated
  std::optional<AngleUnit> angle_unit = {};
};

/// A problem of a match on the host, with the arrays that it points to. Every array ends with the
/// last element that may be read.
struct HostTaskAligned {
  TaskAlignedProblem problem;
  Array scores, pred, points, target, offsets, labels;
};

/// Judges results by what rounding may decide: whose each anchor can be, and its numbers then.
Judge match_judge(const HostTaskAligned& host, const Results& right);

/// The task-aligned match: see operations.hpp.
struct TaskAlignedMatch {
  using Case = TaskAlignedCase;
  using Host = HostTaskAligned;
  static constexpr const char* kName = "task_aligned_match";
  static constexpr const char* kPlainCase = "beta 0";  // overlaps count once: bounds are small
  static constexpr const char* kNanCase = "infinite scores";
  static constexpr int kMixes = 400;

  static bool is_served(const Implementation& each) {
    return each.task_aligned_match.run != nullptr;
  }
  static const std::vector<Case>& table();
  static std::vector<CaseGroup<Case>> groups() { return {{kEveryCase, table()}}; }
  static MoreCases<Case> more_cases();
  static Case random_case(Random& random);
  static std::string describe(const Case& c);

  /// Boxes of no image, and scores of classes that no box of the image has, are NaN. Of random
  /// labels one in ten names no class.
  static Host make(const Case& c, Random& random);
  static std::vector<Call> calls(const Case& c, const Host& host, Random& random);
};

}  // namespace boxloss::conformance
