// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu/native/box_loss/run.hpp"

namespace boxloss::native {

std::size_t Operations::workspace_bytes(const LossProblem& p) { return bytes_of_partials(p); }

template void Operations::forward(const LossProblem&, const LossOutputs&, const Execution&);
template void Operations::backward(const LossProblem&, const GradOutputs&, const void*,
                                   const LossGradients&, const Execution&);

}  // namespace boxloss::native
