// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/class_loss.hpp>

#include "logits.hpp"
#include "operation.hpp"

namespace boxloss::conformance {

/// Of ground-truth boxes or of queries.
struct CaseQuality {
  DType dtype;
  bool is_of_queries = false;

  // Implicit: of ground-truth boxes is all that most lines of the table need.
  constexpr CaseQuality(DType d, bool of_queries = false)  // NOLINT(google-explicit-constructor)
      : dtype(d), is_of_queries(of_queries) {}
};

struct ClassShape {
  std::int64_t sets, images, queries, classes, targets;
};

/// One line of the table.
struct ClassCase {
  std::string name;
  ClassLoss mode;
  CaseLogits logits;
  DType index, labels;
  ClassShape shape;
  Reduction reduction;
  std::optional<CaseQuality> quality;
  std::optional<DType> weight;
  std::optional<CaseNormalizer> normalizer;
  Values values;
  std::optional<double> alpha = {}, gamma = {};
  double no_object_weight = 1;
  /// What target_index and labels are made of, over and over; if there are none, they are random.
  std::vector<std::int64_t> indices = {};
};

/// A problem on the host, with the arrays that it points to. Every array ends with the last element
/// that may be read.
struct HostClasses {
  ClassLossProblem problem;
  Array logits, target_index, labels, quality, query_quality, weight, normalizer;
};

inline bool is_given(const ArrayView& array) { return array.dtype != DType::kNone; }

/// A row's class, or kNoBox or kIgnored.
std::int64_t class_of(const ClassLossProblem& problem, std::int64_t row);

/// How far an implementation's results may be from the oracle's: of loss and scale, and of the
/// gradient of what is in the order (rows, classes) or, if it is transposed, (classes, queries).
Bounds class_loss_bounds(const HostClasses& host);
std::vector<double> class_slope_bounds(const HostClasses& host, const Array& grad,
                                       const Array& scale, bool is_transposed);

/// The class losses: see operations.hpp.
struct ClassLosses {
  using Case = ClassCase;
  using Host = HostClasses;
  static constexpr const char* kName = "class_loss";
  static constexpr const char *kPlainCase = "focal", *kNanCase = "special, focal";
  static constexpr int kMixes = 1500;

  static bool is_served(const Implementation& each) {
    return each.class_loss.run != nullptr && each.class_loss_backward.run != nullptr;
  }
  static const std::vector<Case>& table();
  static std::vector<CaseGroup<Case>> groups() { return {{kEveryCase, table()}}; }
  static MoreCases<Case> more_cases();
  static Case random_case(Random& random);
  static std::string describe(const Case& c);

  /// Of random rows four in ten have no box, and one in ten is ignored. What nothing is computed
  /// from is NaN.
  static Host make(const Case& c, Random& random);
  /// Forward, and backward with both orders of the gradient.
  static std::vector<Call> calls(const Case& c, const Host& host, Random& random);
};

}  // namespace boxloss::conformance
