// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/rotated_box_loss.hpp>
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

/// One line of the table, for losses of one kind of boxes. It runs with other losses, too: see
/// with_losses.
template <class Enum>
struct PairCase {
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
  Enum loss = Enum::kGiou;
  AngleUnit angle_unit = AngleUnit::kRadians;  ///< of rotated boxes
  /// Of their losses, where not as in example_parameters.
  std::optional<double> tau = {}, floor = {};
};

using LossCase = PairCase<Loss>;

/// A problem on the host, with the arrays that it points to. Every array ends with the last element
/// that may be read.
template <class Problem>
struct HostPairs {
  Problem problem;
  Array pred, target, indices, pred_rows, target_rows, weight, normalizer;
};

using HostLoss = HostPairs<LossProblem>;

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
template <class Problem>
Upstream make_upstream(const HostPairs<Problem>& host, UpstreamLayout layout, Values values,
                       Random& random);

/// All that the problem can give: l1 needs equal formats, the iou of rotated boxes areas.
Set<Extra> all_extras(const LossProblem& problem);
Set<Extra> all_extras(const RotatedLossProblem& problem);

/// Outputs: loss, scale, l1 and iou.
template <class Problem>
Results run_forward(const Implementation& implementation, const ParallelFor& parallel_for,
                    const HostPairs<Problem>& host, const Set<Extra>& extras = {});

/// Outputs: the gradients of pred, target and weight, all that the problem can give.
template <class Problem>
Results run_backward(const Implementation& implementation, const ParallelFor& parallel_for,
                     const HostPairs<Problem>& host, const Upstreams& upstreams,
                     const Array& scale);

/// How far each output of an implementation may be from the oracle's: 0 for excluded pairs,
/// infinity where the inputs determine nothing (a union that may be 0, say). Of loss, scale, l1 and
/// iou.
template <class Problem>
Bounds forward_bounds(const HostPairs<Problem>& host);

/// Of the gradients of pred, target and weight, for one way after the other that backward may be
/// asked in. What does not depend on it is bounded once; `host` must live as long.
using BackwardBoundsOf = std::function<Bounds(const Upstreams& upstreams, const Array& scale)>;
template <class Problem>
BackwardBoundsOf backward_bounds(const HostPairs<Problem>& host);

/// What the losses of all kinds of boxes have: see operations.hpp.
template <class P>
struct PairLoss {
  using Problem = P;
  using Case = PairCase<decltype(P::loss)>;
  using Host = HostPairs<P>;
  static constexpr const char *kPlainCase = "f32 f32", *kNanCase = "special";

  static const std::vector<Case>& table();
  static std::vector<CaseGroup<Case>> groups() { return with_losses(table()); }
  static MoreCases<Case> more_cases();
  static Case random_case(Random& random);
  static std::string describe(const Case& c);

  /// Boxes that no pair reads are filled with NaN or, in integer dtypes, the largest value.
  static Host make(const Case& c, Random& random);
  /// Forward, without extras, with all of them and with each alone; then backward with every
  /// combination of gradients and every layout of the incoming one, from the loss, from l1 and from
  /// both.
  static std::vector<Call> calls(const Case& c, const Host& host, Random& random);
};

struct BoxLoss : PairLoss<LossProblem> {
  static constexpr const char* kName = "box_loss";
  static constexpr int kMixes = 3000;

  static bool is_served(const Implementation& each) { return each.box_loss.forward != nullptr; }
};

/// With the same table.
struct RotatedBoxLoss : PairLoss<RotatedLossProblem> {
  static constexpr const char* kName = "rotated_box_loss";
  static constexpr int kMixes = 2000;

  static bool is_served(const Implementation& each) {
    return each.rotated_box_loss.forward != nullptr;
  }
};

}  // namespace boxloss::conformance
