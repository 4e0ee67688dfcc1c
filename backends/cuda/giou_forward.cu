// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "giou_native.hpp"
#include "pair_launch.hpp"

namespace boxloss::BOXLOSS_GPU {

void giou_forward(const GiouLossProblem& problem, const GiouLossOutputs& outputs,
                  const Execution& execution) {
  forward<Giou>(problem, outputs, execution);
}

}  // namespace boxloss::BOXLOSS_GPU
