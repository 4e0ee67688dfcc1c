// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/matching_cost.hpp>

#include "operation.hpp"

namespace boxloss::conformance {

/// What a case knows of classes. Its scores lie as boxes do: a block is an image, a query a slot.
struct CaseClasses {
  ClassTerm term = ClassTerm::kNone;
  DType scores = DType::kF32;
  Layout layout = Layout::kPacked;
  DType labels = DType::kI64;
  double alpha = 0.25, gamma = 2;
};

/// `columns` are the ground-truth boxes of all images.
struct CostShape {
  std::int64_t layers, images, queries, columns;
  std::int64_t classes = 5;
};

struct CaseWeights {
  double iou, l1, class_term;
};

/// One line of the table, for one kind of boxes. It runs with other losses, too: see with_losses.
template <class Enum>
struct CostCaseOf {
  std::string name;
  CaseClasses classes;
  Operand pred, target;
  DType offsets;
  CostShape shape;
  CaseWeights weights;
  CaseEps eps;
  std::optional<float> nonfinite;
  Values values;
  std::vector<std::int64_t> indices = {};  ///< the offsets, if they are not random
  Enum loss = Enum::kGiou;
  AngleUnit angle_unit = AngleUnit::kRadians;  ///< of rotated boxes
  double angle_weight = 0;                     ///< likewise
};

using CostCase = CostCaseOf<Loss>;

/// A problem of costs on the host, with the arrays that it points to. Every array ends with the
/// last element that may be read.
template <class P>
struct HostCostOf {
  P problem;
  Array pred, target, offsets, scores, labels;
};

/// How far each entry of an implementation's result may be from the oracle's: 0 for columns of no
/// image, infinity where the inputs determine nothing.
template <class P>
std::vector<double> cost_bounds(const P& problem);

/// Number of values of the result.
std::int64_t cost_entries(const PairwiseProblem& problem);

/// What the matcher's costs of all kinds of boxes have: see operations.hpp.
template <class P>
struct CostOf {
  using Case = CostCaseOf<decltype(P::loss)>;
  using Host = HostCostOf<P>;
  static constexpr const char *kPlainCase = "one image, all columns", *kNanCase = "special";

  static const std::vector<Case>& table();
  static std::vector<CaseGroup<Case>> groups() { return with_losses(table()); }
  static MoreCases<Case> more_cases();
  static Case random_case(Random& random);
  static std::string describe(const Case& c);

  /// What no entry is computed from is filled with NaN or, in integer dtypes, the largest value. Of
  /// random labels one in ten names no class.
  static Host make(const Case& c, Random& random);
  static std::vector<Call> calls(const Case& c, const Host& host, Random& random);
};

struct MatchingCost : CostOf<CostProblem> {
  static constexpr const char* kName = "matching_cost";
  static constexpr int kMixes = 1000;

  static bool is_served(const Implementation& each) { return each.matching_cost.run != nullptr; }
};

/// With the same table.
struct RotatedMatchingCost : CostOf<RotatedCostProblem> {
  static constexpr const char* kName = "rotated_matching_cost";
  static constexpr int kMixes = 1000;

  static bool is_served(const Implementation& each) {
    return each.rotated_matching_cost.run != nullptr;
  }
};

}  // namespace boxloss::conformance
