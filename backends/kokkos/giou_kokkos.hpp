// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/giou_loss.hpp>

/// Both passes on the host space and on the device space, compiled apart because each takes its
/// minute.
namespace boxloss::kokkos {

void giou_forward_on_host(const GiouLossProblem&, const GiouLossOutputs&, const Execution&);
void giou_backward_on_host(const GiouLossProblem&, const GradView& grad_loss, const void* scale,
                           const GiouLossGradients&, const Execution&);

void giou_forward_on_device(const GiouLossProblem&, const GiouLossOutputs&, const Execution&);
void giou_backward_on_device(const GiouLossProblem&, const GradView& grad_loss, const void* scale,
                             const GiouLossGradients&, const Execution&);

}  // namespace boxloss::kokkos
