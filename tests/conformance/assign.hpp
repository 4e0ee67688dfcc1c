// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/assign.hpp>

#include "operation.hpp"

namespace boxloss::conformance {

/// What finite costs are like.
enum class Costs {
  kReal,        ///< no two alike
  kIntegers,    ///< small ones: ties abound
  kTenths,      ///< multiples of 0.1: ties but for the order of float64 additions
  kEqual,       ///< all the same
  kDuplicates,  ///< of a few queries, each of them several times
  kHuge,        ///< of either sign, as large as their sums allow
  kOverflow,    ///< up to the largest itself, so that sums of float64 are infinite
};

/// Which costs are not finite.
enum class Special {
  kNone,
  kNanQueries,        ///< all of some queries
  kForbiddenColumns,  ///< +inf: all of some columns
  kForbidden,         ///< +inf: two in three
  kAllForbidden,
  kMinusInfinity,  ///< a few
  kMixed,          ///< any of NaN, +inf and -inf: four in ten
  kAllMixed,
};

/// Which pairs are the best.
enum class Goal {
  kLeast,
  kGreatest,
  kLimited,  ///< the least, of costs up to a limit that some of them reach
};

/// What says which rows and columns belong together.
enum class Ragged { kOffsets, kLengths, kNothing };

struct AssignShape {
  std::int64_t layers, images, queries, columns;
  std::int64_t groups = 1;
};

/// One line of the table. Its costs lie as boxes do: a layer is an image, a query a slot, and a
/// column a coordinate.
struct AssignCase {
  std::string name;
  DType cost;
  Layout layout;
  DType offsets, index;
  AssignShape shape;
  Costs costs;
  Special special = Special::kNone;
  std::vector<std::int64_t> indices = {};  ///< offsets or lengths, if they are not random
  Goal goal = Goal::kLeast;
  Ragged ragged = Ragged::kOffsets;  ///< for one image and group, it may be another
};

/// A problem of an assignment on the host, with the arrays that it points to. Every array ends with
/// its view's last element.
struct HostAssign {
  AssignProblem problem;
  Array cost, offsets, lengths;
};

/// The assignment: see operations.hpp.
struct Assign {
  using Case = AssignCase;
  using Host = HostAssign;
  static constexpr const char* kName = "assign";
  static constexpr const char* kPlainCase = "more columns than queries in one image";
  static constexpr const char* kNanCase = kPlainCase;
  static constexpr int kMixes = 300;

  static bool is_served(const Implementation& each) { return each.assign.run != nullptr; }
  static const std::vector<Case>& table();
  static std::vector<CaseGroup<Case>> groups() { return {{kEveryCase, table()}}; }
  static MoreCases<Case> more_cases();
  static Case random_case(Random& random);
  static std::string describe(const Case& c);

  /// What is in no image's column, or between the columns, is NaN or lower than all costs, if the
  /// dtype has such: whoever reads it as a cost takes it.
  static Host make(const Case& c, Random& random);
  static std::vector<Call> calls(const Case& c, const Host& host, Random& random);
};

}  // namespace boxloss::conformance
