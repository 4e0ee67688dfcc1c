// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "run.hpp"

namespace boxloss::conformance {

/// How far each output of an implementation may be from the oracle's: 0 for excluded pairs,
/// infinity where the inputs determine nothing (a union that may be 0, say).
struct ForwardBounds {
  std::vector<double> loss, scale, l1, iou;
};

struct BackwardBounds {
  std::vector<double> pred, target, weight;
};

ForwardBounds forward_bounds(const HostProblem& host);

/// For one way after the other that backward may be asked in. What does not depend on it is bounded
/// once; `host` must live as long.
using BackwardBoundsOf =
    std::function<BackwardBounds(const Upstreams& upstreams, const Array& scale)>;
BackwardBoundsOf backward_bounds(const HostProblem& host);

}  // namespace boxloss::conformance
