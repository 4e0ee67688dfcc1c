// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include "box_loss/pair_launch.hpp"
#include "operations.hpp"

namespace boxloss::BOXLOSS_GPU {

std::size_t Operations::workspace_bytes(const LossProblem&) { return kWorkspaceBytes; }

void Operations::forward(const LossProblem& p, const LossOutputs& outputs,
                         const Execution& execution) {
  run(p, outputs, execution, [&](auto dtypes, const auto& pairing) {
    using D = decltype(dtypes);
    launch_forward<typename D::Pred, typename D::Target, typename D::Compute>(p, pairing, outputs,
                                                                              execution);
  });
}

}  // namespace boxloss::BOXLOSS_GPU
