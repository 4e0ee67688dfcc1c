// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/class_loss.hpp"
#include "operation.hpp"

namespace boxloss::torch_binding {

using ClassLossTensors = TensorsOf<binding::ClassLoss>;

/// Through the dispatcher.
at::Tensor call_class_loss(const ClassLossTensors& args);

/// Loss and scale in differentiable ATen operators, with the same rules.
std::tuple<at::Tensor, at::Tensor> class_loss_composite(const ClassLossTensors& args);

}  // namespace boxloss::torch_binding
