// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include "box_loss/pair_launch.hpp"

namespace boxloss::BOXLOSS_GPU {

template void Operations::backward(const LossProblem&, const GradOutputs&, const void*,
                                   const LossGradients&, const Execution&);

}  // namespace boxloss::BOXLOSS_GPU
