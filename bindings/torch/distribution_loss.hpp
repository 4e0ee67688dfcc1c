// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/distribution_loss.hpp"
#include "operation.hpp"

namespace boxloss::torch_binding {

using DistributionLossTensors = TensorsOf<binding::DistributionLoss>;

/// Through the dispatcher.
at::Tensor call_distribution_loss(const DistributionLossTensors& args);

/// Loss and scale in differentiable ATen operators, with the same rules.
std::tuple<at::Tensor, at::Tensor> distribution_loss_composite(const DistributionLossTensors& args);

}  // namespace boxloss::torch_binding
