// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "giou_kokkos.hpp"
#include "pair_launch.hpp"

namespace boxloss::kokkos {

void giou_forward_on_host(const GiouLossProblem& problem, const GiouLossOutputs& outputs,
                          const Execution& execution) {
  ensure_initialized();
  const Call<HostSpace> call;
  forward<Giou>(call, problem, outputs, execution);
  call.space.fence("boxloss::giou_forward");  // a caller on the CPU reads its result at once
}

void giou_backward_on_host(const GiouLossProblem& problem, const GradView& grad_loss,
                           const void* scale, const GiouLossGradients& gradients,
                           const Execution&) {
  ensure_initialized();
  const Call<HostSpace> call;
  backward<Giou>(call, problem, grad_loss, scale, gradients);
  call.space.fence("boxloss::giou_backward");
}

}  // namespace boxloss::kokkos
