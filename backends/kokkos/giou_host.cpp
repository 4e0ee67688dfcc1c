// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "giou_kokkos.hpp"
#include "pair_launch.hpp"

namespace boxloss::kokkos {

void giou_forward_on_host(const GiouLossProblem& problem, const GiouLossOutputs& outputs,
                          const Execution& execution) {
  with_device_errors([&] {
    ensure_initialized();
    const HostSpace space;
    forward<Giou>(space, problem, outputs, execution);
    space.fence("boxloss::giou_forward");  // a caller on the CPU reads its result at once
  });
}

void giou_backward_on_host(const GiouLossProblem& problem, const GradView& grad_loss,
                           const void* scale, const GiouLossGradients& gradients,
                           const Execution&) {
  with_device_errors([&] {
    ensure_initialized();
    const HostSpace space;
    backward<Giou>(space, problem, grad_loss, scale, gradients);
    space.fence("boxloss::giou_backward");
  });
}

}  // namespace boxloss::kokkos
