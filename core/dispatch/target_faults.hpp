// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/target_faults.hpp>

#include "../kernels/target_faults.hpp"

namespace boxloss {

inline TargetFaultsArgs target_faults_args(const TargetProblem& p, const TargetOutputs& outputs) {
  return {elements<Any>(p.boxes.data, p.boxes.dtype),
          indices(p.labels),
          elements<Any>(p.image.data, p.image.dtype),
          p.rows,
          p.classes,
          p.images,
          p.has_sizes,
          outputs.factor,
          outputs.answer};
}

}  // namespace boxloss
