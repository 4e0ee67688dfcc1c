// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/distribution_loss.hpp>

#include "logits.hpp"
#include "operation.hpp"

namespace boxloss::conformance {

struct DistributionShape {
  std::int64_t sets, images, queries, bins, targets;
};

/// One line of the table.
struct DistributionCase {
  std::string name;
  DistributionLoss mode;
  CaseLogits logits;
  CaseLogits others;  ///< ddf's teacher; of fgl the dtype alone, of reference, target and edges
  DType index;
  DistributionShape shape;
  Reduction reduction;
  std::optional<DType> quality;  ///< of ddf confidence has it, too, or else float32
  std::optional<CaseNormalizer> normalizer;
  Values values;
  double number;  ///< fgl's reg_scale, ddf's temperature
  /// What target_index is made of, over and over; if there are none, it is random.
  std::vector<std::int64_t> indices = {};
};

/// A problem on the host, with the arrays that it points to. Every array ends with the last element
/// that may be read.
struct HostDistributions {
  DistributionLossProblem problem;
  Array logits, target_index, quality, reference, target, edges, teacher, confidence, normalizer;
};

/// A row's row of target, or kNoBox or kIgnored; and whether it has a loss.
std::int64_t target_of(const DistributionLossProblem& problem, std::int64_t row);
bool counts(const DistributionLossProblem& problem, std::int64_t row);

/// How far an implementation's results may be from the oracle's: of loss and scale, and of the
/// gradient.
Bounds distribution_loss_bounds(const HostDistributions& host);
std::vector<double> distribution_slope_bounds(const HostDistributions& host, const Array& grad,
                                              const Array& scale);

/// The losses of distributions: see operations.hpp.
struct DistributionLosses {
  using Case = DistributionCase;
  using Host = HostDistributions;
  static constexpr const char* kName = "distribution_loss";
  static constexpr const char *kPlainCase = "fgl", *kNanCase = "special, fgl";
  static constexpr int kMixes = 1000;

  static bool is_served(const Implementation& each) {
    return each.distribution_loss.run != nullptr && each.distribution_loss_backward.run != nullptr;
  }
  static const std::vector<Case>& table();
  static std::vector<CaseGroup<Case>> groups() { return {{kEveryCase, table()}}; }
  static MoreCases<Case> more_cases();
  static Case random_case(Random& random);
  static std::string describe(const Case& c);

  /// Of random rows four in ten have no box, and one in ten is ignored. What nothing is computed
  /// from is NaN.
  static Host make(const Case& c, Random& random);
  static std::vector<Call> calls(const Case& c, const Host& host, Random& random);
};

}  // namespace boxloss::conformance
