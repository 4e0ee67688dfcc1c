// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "array.hpp"
#include "cases.hpp"

namespace boxloss::conformance {

/// A problem on the host, with the arrays that it points to. Every array ends with the last element
/// that may be read.
struct HostProblem {
  LossProblem problem;
  Array pred, target, indices, pred_rows, target_rows, weight, normalizer;
};

/// Boxes that no pair reads are filled with NaN or, in integer dtypes, the largest value.
/// `indices`, if any, are the lengths or offsets, or what the rows of both sides are made of, in
/// all combinations; else they are random.
HostProblem make_problem(const Case& c, Random& random,
                         const std::vector<std::int64_t>& indices = {});

/// How an incoming gradient lies in memory.
enum class UpstreamLayout { kContiguous, kGaps, kOneValue };

/// The gradient with respect to the loss, or to l1.
struct Upstream {
  Array values;
  std::int64_t image_stride, slot_stride;
};

/// Rows that do not count are filled with NaN. A reduced loss has one value for each set.
Upstream make_upstream(const HostProblem& host, UpstreamLayout layout, Values values,
                       Random& random);

}  // namespace boxloss::conformance
