// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <functional>

#include "operation.hpp"

namespace boxloss::conformance {

struct CasePairing {
  Pairing::Kind kind;
  DType indices;  ///< of lengths or offsets
  /// With pairs by index: of the rows of each side, if it has any.
  std::optional<DType> pred_rows = {}, target_rows = {};
};

/// With offsets `rows` is the length of the ragged list. With pairs by index the lists have
/// (images, slots) preds and (images, rows) targets; what has no index has (sets, pairs).
struct Shape {
  std::int64_t images, slots, rows;
  std::int64_t sets = 1, pairs = 0;
};

struct CaseNormalizer {
  DType dtype;
  std::int64_t stride;

  // Implicit: one for all sets is all that most lines of the table need.
  constexpr CaseNormalizer(DType d, std::int64_t s = 0)  // NOLINT(google-explicit-constructor)
      : dtype(d), stride(s) {}
};

/// One line of the table. It runs with other losses, too: see with_losses.
struct LossCase {
  std::string name;
  CasePairing pairing;
  Operand pred, target;
  Shape shape;
  Reduction reduction;
  std::optional<DType> weight;
  std::optional<CaseNormalizer> normalizer;
  CaseEps eps;
  Values values;
  /// The lengths or offsets, or what the rows of both sides are made of, in all combinations; if
  /// there are none, they are random.
  std::vector<std::int64_t> indices = {};
  Loss loss = Loss::kGiou;
};

/// A problem on the host, with the arrays that it points to. Every array ends with the last element
/// that may be read.
struct HostLoss {
  LossProblem problem;
  Array pred, target, indices, pred_rows, target_rows, weight, normalizer;
};

/// How an incoming gradient lies in memory.
enum class UpstreamLayout { kContiguous, kGaps, kOneValue };

/// The gradient with respect to the loss, or to l1.
struct Upstream {
  Array values;
  std::int64_t image_stride, slot_stride;
};

/// What backward comes from; one without a value is left out.
struct Upstreams {
  std::optional<Upstream> loss, l1;
};

/// Rows that do not count are filled with NaN. A reduced loss has one value for each set.
Upstream make_upstream(const HostLoss& host, UpstreamLayout layout, Values values, Random& random);

/// All that the problem can give: l1 needs equal formats.
Set<Extra> all_extras(const LossProblem& problem);

/// Outputs: loss, scale, l1 and iou.
Results run_forward(const Implementation& implementation, const ParallelFor& parallel_for,
                    const HostLoss& host, const Set<Extra>& extras = {});

/// How far each output of an implementation may be from the oracle's: 0 for excluded pairs,
/// infinity where the inputs determine nothing (a union that may be 0, say). Of loss, scale, l1 and
/// iou.
Bounds forward_bounds(const HostLoss& host);

/// Of the gradients of pred, target and weight, for one way after the other that backward may be
/// asked in. What does not depend on it is bounded once; `host` must live as long.
using BackwardBoundsOf = std::function<Bounds(const Upstreams& upstreams, const Array& scale)>;
BackwardBoundsOf backward_bounds(const HostLoss& host);

/// The loss: see operations.hpp.
struct BoxLoss {
  using Case = LossCase;
  using Host = HostLoss;
  static constexpr const char* kName = "box_loss";
  static constexpr const char *kPlainCase = "f32 f32", *kNanCase = "special";
  static constexpr int kMixes = 3000;

  static bool is_served(const Implementation& each) { return each.box_loss.forward != nullptr; }
  static const std::vector<Case>& table();
  static std::vector<CaseGroup<Case>> groups() { return with_losses(table()); }
  static std::vector<Case> further_cases();
  static std::vector<Case> wild_cases();
  static std::vector<Case> cases_for_bits();
  static Case random_case(Random& random);
  static std::string describe(const Case& c);

  /// Boxes that no pair reads are filled with NaN or, in integer dtypes, the largest value.
  static Host make(const Case& c, Random& random);
  /// Forward, without extras, with all of them and with each alone; then backward with every
  /// combination of gradients and every layout of the incoming one, from the loss, from l1 and from
  /// both.
  static std::vector<Call> calls(const Case& c, const Host& host, Random& random);
};

}  // namespace boxloss::conformance
