// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/matching_cost.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cases.hpp"

namespace boxloss::conformance {

/// What a case knows of classes. Its scores lie as boxes do: a block is an image, a query a slot.
struct CaseClasses {
  ClassTerm term = ClassTerm::kNone;
  DType scores = DType::kF32;
  Layout layout = Layout::kPacked;
  DType labels = DType::kI64;
  double alpha = 0.25, gamma = 2;
};

/// `columns` are the true boxes of all images.
struct CostShape {
  std::int64_t layers, images, queries, columns;
  std::int64_t classes = 5;
};

struct CaseWeights {
  double iou, l1, class_term;
};

/// One line of the table. Its loss is set when it runs: see cases_of.
struct CostCase {
  std::string name;
  CaseClasses classes;
  Operand pred, target;
  DType offsets;
  CostShape shape;
  CaseWeights weights;
  CaseEps eps;
  std::optional<float> nonfinite;
  Values values;
  std::vector<std::int64_t> cuts = {};    ///< the offsets, if they are not random
  std::vector<std::int64_t> labels = {};  ///< if they are not random; repeated
  Loss loss{};
};

/// The named cases: every implementation has to pass them all.
const std::vector<CostCase>& cost_cases();

/// Too much work to do for each loss.
const std::vector<CostCase>& large_cost_cases();

/// A small case of any mix of properties.
CostCase random_cost_case(Random& random);

}  // namespace boxloss::conformance
