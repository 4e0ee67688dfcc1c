// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>
#include <optional>

#include "memory.hpp"
#include "problem.hpp"

/// Runs an implementation on copies of a host problem on its device.
namespace boxloss::conformance {

/// What was not asked for is empty.
struct ForwardResult {
  Array loss, scale, l1, iou;
  bool sentinels_intact;
};

/// What backward comes from; one without a value is left out.
struct Upstreams {
  std::optional<Upstream> loss, l1;
};

/// Which gradients are asked for.
struct Wanted {
  bool pred, target, weight;
};

/// What was not wanted is empty.
struct BackwardResult {
  Array pred, target, weight;
  bool sentinels_intact;
};

/// All that the problem can give: integer targets and absent weights have no gradient.
Wanted all_gradients(const LossProblem& problem);

/// All that the problem can give: l1 needs equal formats.
Set<Extra> all_extras(const LossProblem& problem);

ForwardResult run_forward(const Implementation& implementation, const HostProblem& host,
                          const Set<Extra>& extras = {},
                          const ParallelFor& parallel_for = boxloss::parallel_for);

/// How gradients are aligned: as allocations are, or to their elements only (to a box, where
/// threads add 16-bit values to shared rows).
enum class Alignment { kWide, kElement };

/// Whether gradients are contiguous or, as far as they can, keep the strides of their boxes.
enum class GradientLayout { kRows, kOfBoxes };

/// Do they then lie in another way?
bool can_keep_strides(const LossProblem& problem);

/// Gives gradients row by row, in whatever layout they were written.
BackwardResult run_backward(const Implementation& implementation, const HostProblem& host,
                            const Upstreams& upstreams, const Array& scale, const Wanted& wanted,
                            const ParallelFor& parallel_for = boxloss::parallel_for,
                            Alignment alignment = Alignment::kWide,
                            GradientLayout layout = GradientLayout::kRows);

}  // namespace boxloss::conformance
